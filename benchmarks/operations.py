"""Operations of Drevo's equations by robot, quantity and formalism, beside recorded figures of peers.

Writes operations.md and operations.json beside this file, and the table of the README.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import drevo
from drevo import dh, robots
from drevo.codegen.graph import levers
from drevo.compiler.compete import compete
from drevo.compiler.pages.derivation import Derivation
from drevo.documents.sequence.expression import Group, Terms
from drevo.errors import DrevoError
from drevo.robots.arms import drawn
from drevo.robots.data import quarter

sys.path.insert(0, str(Path(__file__).parent))
import report
import symbolic_peers
from machines import MACHINES

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
    "The last columns are run here: the recursion of Khalil and Kleinfinger in base parameters as tools of the "
    "class of SymPyBotics write it, which is Drevo with every lever of its own switched off (DREVO_WITHOUT), and "
    "CasADi's graph of the very recursion in body axes that Drevo calls newton_euler, after its cse. The others "
    "are recorded, not run here: SymPyBotics (5d4613a) and OpenSYMORO (ba07d97), both with base parameters, "
    "forward dynamics by OpenSYMORO's articulated bodies; CasADi 3.8 on a trace of Pinocchio's recursion with the "
    "parameters as numbers (its mass matrix is a Jacobian). Inertias are general (all ten parameters of each link "
    "nonzero, unrelated) unless the robot says symmetric; wheels and rotors of the machines are symmetric about "
    "their axis."
)
HEAD = (
    "| robot | quantity | Drevo | by | SymPyBotics | OpenSYMORO | CasADi, Pinocchio | without levers | "
    "CasADi, same recursion |"
)
RULE = "|---|---|--:|---|--:|--:|--:|--:|--:|"


def main() -> int:
    """Count, print, write."""
    found = {name: count(robot) for name, robot in subjects().items()}
    (HERE / "operations.json").write_text(json.dumps(found, indent=1) + "\n")
    text = markdown(found)
    (HERE / "operations.md").write_text(text)
    report.insert(HERE.parent / "README.md", "counts", summary(found))
    report.insert(HERE.parent / "docs/operations.md", "links", "\n".join(links()))
    print(text)
    return 0


def subjects() -> dict[str, drevo.Robot]:
    """Arms whose links have all ten inertial parameters, unrelated; the symmetric ones of the books; machines."""
    arms = {name: getattr(robots, name)("general") for name in ("puma560", "rx90", "stanford")}
    arms |= {"panda": general(PANDA, 2017), "iiwa7": general(IIWA7, 2013)}
    arms |= {f"{name} symmetric": getattr(robots, name)("symmetric") for name in ("rx90", "stanford")}
    return arms | {name: make() for name, make in MACHINES.items()}


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
        if quantity in TRACED:
            with levers.without(*levers.LEVERS):
                plain = compete(robot.model, quantity, formalism="khalil").program.counts
            out[quantity]["without levers"] = pair(plain)
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


def links() -> list[str]:
    """Where the operations of inverse dynamics go, link by link."""
    lines = []
    for name, robot in subjects().items():
        if name not in MACHINES:
            d = drevo.write_out(robot, "inverse_dynamics", formalism="khalil")
            cells = [f"{m}/{a}" for m, a in by_link(d).values()]
            lines.append(f"| {name} | {pair(d.counts)} | {' | '.join(cells)} |" + " |" * (7 - len(cells)))
    return ["| robot | all | 1 | 2 | 3 | 4 | 5 | 6 | 7 |", "|---|--:|" + "--:|" * 7, *lines]


def by_link(d: Derivation) -> dict[str, tuple[int, int]]:
    """Products and sums by the number of the link that a value belongs to; one without a number is of the next."""
    out: dict[str, tuple[int, int]] = {}
    for section in d.sequence.main:
        own = re.fullmatch(r"link (\S+) .*", section.title)
        link, waiting = own[1] if own else "", (0, 0)
        for s in section.statements:
            if re.match(r"q_\d|phi\d", s.name):
                continue  # sums of angles
            waiting = _both(waiting, _operations(s.terms))
            if back := re.fullmatch(r"(?:n|f|tau)_(\d+)[xyz]?", s.name):
                link = back[1]
            if back or re.match(r"[A-Za-z]+_\d", s.name):
                out[link], waiting = _both(out.get(link, (0, 0)), waiting), (0, 0)
        out[link] = _both(out.get(link, (0, 0)), waiting)
    out.pop("", None)  # sines and cosines of sums
    return dict(sorted(out.items(), key=lambda item: int(item[0]) if item[0].isdigit() else 0))


def _both(x: tuple[int, int], y: tuple[int, int]) -> tuple[int, int]:
    return x[0] + y[0], x[1] + y[1]


def _operations(terms: Terms) -> tuple[int, int]:
    total = (0, max(0, len(terms) - 1))
    for t in terms:
        total = _both(total, (len(t.factors) - 1, 0))
        for f in t.factors:
            total = _both(total, _operations(f.terms)) if isinstance(f, Group) else total
    return total


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
            run_here = (counts[quantity].get(x, "") for x in ("without levers", "casadi"))
            cells = (robot, quantity.replace("_", " "), f"**{pair(own)}**", own["formalism"], *peers, *run_here)
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
