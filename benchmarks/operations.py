"""Operations of Drevo's equations by robot, quantity and formalism, beside recorded figures of peers.

Writes operations.md and operations.json beside this file, and the table of the README.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import drevo
from drevo.errors import DrevoError
from drevo.robot import dh
from drevo.robot import embedded as robots
from drevo.robot.embedded.arms import drawn
from drevo.robot.embedded.data import quarter

sys.path.insert(0, str(Path(__file__).parent))
import report
import symbolic_peers

HERE = Path(__file__).parent
FORMALISMS = (
    "auto",
    "newton_euler",
    "khalil",
    "planar",
    "telegin",
    "kovalchuk",
    "articulated_body",
    "vereshchagin",
)
QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics", "bias", "gravity")

# modified DH rows: alpha in quarter turns, a, d
PANDA = ((0, 0, 0), (-1, 0, 0), (1, 0, 0.316), (1, 0.0825, 0), (-1, -0.0825, 0.384), (1, 0, 0), (1, 0.088, 0))
IIWA7 = ((0, 0, 0), (-1, 0, 0), (1, 0, 0.42), (1, 0, 0), (-1, 0, 0.4), (-1, 0, 0), (1, 0, 0))

# Recorded, not run here: products/sums as measured with SymPyBotics (5d4613a) and OpenSYMORO (ba07d97), both
# with base parameters, and with CasADi 3.8 from a trace of Pinocchio's recursion (parameters as numbers).
PEERS: dict[str, dict[str, tuple[str, str, str]]] = {
    "inverse_dynamics": {
        "puma560": ("301/240", "301/240", "461/373"),
        "rx90": ("286/226", "287/226", "445/359"),
        "stanford": ("264/215", "262/211", "441/361"),
        "panda": ("362/288", "361/288", "556/451"),
        "iiwa7": ("344/271", "343/271", "534/431"),
    },
    "mass_matrix": {
        "puma560": ("289/212", "247/163", "414/331"),
        "rx90": ("263/190", "195/133", "388/308"),
        "stanford": ("242/169", "147/105", "353/272"),
        "panda": ("572/411", "316/216", "748/581"),
        "iiwa7": ("495/346", "269/181", "685/524"),
    },
    "forward_dynamics": {
        "puma560": ("", "920/691", ""),
        "rx90": ("", "830/612", ""),
        "stanford": ("", "700/526", ""),
        "panda": ("", "1157/870", ""),
        "iiwa7": ("", "990/736", ""),
    },
}
TRACED = ("inverse_dynamics", "mass_matrix", "forward_dynamics")  # what CasADi is given to trace
PEERS_TEXT = (
    "The last column is run here: CasADi's graph of the very recursion in body axes that Drevo calls "
    "newton_euler, after its cse. The others are recorded, not run here: SymPyBotics (5d4613a) and "
    "OpenSYMORO (ba07d97), both with base parameters, forward dynamics by OpenSYMORO's articulated bodies; "
    "CasADi 3.8 on a trace of Pinocchio's recursion with the parameters as numbers (its mass matrix is a "
    "Jacobian). Inertias are general (all ten parameters of each link nonzero, unrelated) unless the robot "
    "says symmetric."
)
HEAD = "| robot | quantity | Drevo | by | SymPyBotics | OpenSYMORO | CasADi, Pinocchio | CasADi, same recursion |"
RULE = "|---|---|--:|---|--:|--:|--:|--:|"


def main() -> int:
    """Count, print, write."""
    found = {name: count(robot) for name, robot in subjects().items()}
    (HERE / "operations.json").write_text(json.dumps(found, indent=1) + "\n")
    text = markdown(found)
    (HERE / "operations.md").write_text(text)
    report.insert(HERE.parent / "README.md", "counts", summary(found))
    print(text)
    return 0


def subjects() -> dict[str, drevo.Robot]:
    """Arms whose links have all ten inertial parameters, unrelated; and the symmetric ones of the books."""
    arms = {name: getattr(robots, name)("general") for name in ("puma560", "rx90", "stanford")}
    arms |= {"panda": general(PANDA, 2017), "iiwa7": general(IIWA7, 2013)}
    return arms | {f"{name} symmetric": getattr(robots, name)("symmetric") for name in ("rx90", "stanford")}


def general(rows: Sequence[tuple[float, float, float]], seed: int) -> drevo.Robot:
    """A chain of revolute joints with drawn inertias."""
    bodies = drawn("general", [""] * len(rows), seed)
    table = [
        {"alpha": quarter(alpha), "a": a, "d": d, "mass": b.mass, "com": b.com, "inertia": b.tensor}
        for (alpha, a, d), b in zip(rows, bodies)
    ]
    return dh.from_dh(table, "modified")


def count(robot: drevo.Robot) -> dict[str, dict[str, Any]]:
    """Counts by quantity and formalism; a formalism that does not give a quantity is left out."""
    out: dict[str, dict[str, Any]] = {}
    for quantity in QUANTITIES:
        out[quantity] = {}
        for formalism in FORMALISMS:
            try:
                d = drevo.write_out(robot, quantity, formalism=formalism)
            except DrevoError:
                continue
            out[quantity][formalism] = {**d.counts, "formalism": d.formalism}
        traced = symbolic_peers.casadi_counts(robot.model, quantity) if quantity in TRACED else None
        if traced:
            out[quantity]["casadi"] = f"{traced[0]}/{traced[1]}"
    return out


def plane_chains() -> list[str]:
    """M and bias of plane chains, all parameters symbols: SymPy's Kane method after its cse, and Drevo."""
    lines = ["| links | SymPy, M and forcing | Drevo, M | Drevo, bias |", "|--:|--:|--:|--:|"]
    for n in (1, 2, 3):
        found = symbolic_peers.sympy_counts(n)
        arm = drevo.Builder(f"plane {n}", gravity=(0.0, -9.81, 0.0))
        for i in range(n):
            arm.body(
                f"link{i + 1}", f"link{i}" if i else "world", origin=(0.5 / i if i else 0.0, 0, 0), mass=1.0 + i,
                com=(0.2 + 0.01 * i, 0.03 * (i + 1), 0.0), inertia=((0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1)),
            )  # fmt: skip
        own = [pair(drevo.write_out(arm.robot(), x, symbols="all").counts) for x in ("mass_matrix", "bias")]
        peer = f"{found[0]}/{found[1]}" if found else "not installed"
        lines.append(f"| {n} | {peer} | {own[0]} | {own[1]} |")
    return lines


def pair(counts: dict[str, Any]) -> str:
    """Products/sums."""
    divisions = f"/{counts['div']}" if counts.get("div") else ""
    return f"{counts['mul']}/{counts['add']}{divisions}"


def rows(found: dict[str, Any], quantities: Sequence[str]) -> list[str]:
    """Lines of the table."""
    lines = []
    for quantity in quantities:
        for robot, counts in found.items():
            own = counts[quantity]["auto"]
            peers = PEERS.get(quantity, {}).get(robot, ("", "", ""))
            traced = counts[quantity].get("casadi", "")
            cells = (robot, quantity.replace("_", " "), f"**{pair(own)}**", own["formalism"], *peers, traced)
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def summary(found: dict[str, Any]) -> str:
    """What the README shows."""
    arms = {name: found[name] for name in PEERS["inverse_dynamics"] if name in found}
    return "\n".join([HEAD, RULE, *rows(arms, ["inverse_dynamics"])])


def markdown(found: dict[str, Any]) -> str:
    """The page."""
    from drevo.codegen.graph.program import CONVENTION

    shown = [f for f in FORMALISMS if any(f in by for counts in found.values() for by in counts.values())]
    plain = ["| robot | quantity | " + " | ".join(shown) + " |", "|---|---|" + "--:|" * len(shown)]
    for robot, counts in found.items():
        for quantity, by in counts.items():
            cells = [pair(by[f]) if f in by else "" for f in shown]
            plain.append(f"| {robot} | {quantity.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join([
        "# Operations", "", f"Products/sums(/divisions), made by `make bench`. {CONVENTION}", "",
        PEERS_TEXT, "", HEAD, RULE, *rows(found, QUANTITIES), "", "## Plane chains, everything symbolic", "",
        *plane_chains(), "", "## By formalism", "", *plain, "",
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
