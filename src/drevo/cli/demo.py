"""drevo demo: the main job from end to end; writes pages of equations, prints checks and speeds."""

from __future__ import annotations

import html
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .bench import shortest_time
from .common import MAX_BATCH, Json, guarded, load_robot, option, print_json, print_table, progress

if TYPE_CHECKING:
    from ..compiler.pages.derivation import Derivation
    from ..robot.face import Robot

DEMO_PAGES = (
    ("three-link", "mass_matrix"),
    ("three-link", "inverse_dynamics"),
    ("three-link", "gravity"),
    ("three-link", "kinetic_energy"),
    ("two-arm-planar", "mass_matrix"),
    ("two-arm-planar", "inverse_dynamics"),
    ("puma560", "inverse_dynamics"),
)
POSTURE = (0.4, -0.9, 0.5, 0.3, 0.8, 0.0)  # in which the Puma 560 stands on its page
DEMO_QUANTITIES = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
THROUGHPUT_STATES = 100_000
SAMPLES = 64  # states on which the machine code is compared with the plain recursion
WRITTEN_LIMIT, COMPILED_LIMIT, RETURN_LIMIT = 1e-12, 1e-12, 1e-8


@dataclass(slots=True)
class Report:
    """Results of the demo: pages, checks and speeds."""

    pages: list[tuple[str, str, str, str, dict[str, int]]] = field(default_factory=list)
    checks: list[tuple[str, float, float]] = field(default_factory=list)
    speeds: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """True if every check is within its limit."""
        return all(worst <= limit for _, worst, limit in self.checks)


@guarded
def demo(
    output: Annotated[Path, option("The folder for the pages.", "-o", "--output")] = Path("demo"),
    states: Annotated[
        int, option("How many random states of the Puma 560 to compute.", min=SAMPLES, max=MAX_BATCH)
    ] = THROUGHPUT_STATES,
    as_json: Json = False,
) -> None:
    """Write out the equations of two robots, compile a third, and check and time the results."""
    from ..io.files import write_whole

    start = time.perf_counter()
    report = Report()
    with progress(len(DEMO_PAGES) + len(DEMO_QUANTITIES), "demo") as step:
        for robot, quantity in DEMO_PAGES:
            step(f"{robot} {quantity}")
            _write_page(report, output, robot, quantity)
        _compile_puma(report, states, step)
    page = write_whole("demo", output / "index.html", _index(report, states))
    seconds = time.perf_counter() - start
    if as_json:
        print_json({**asdict(report), "ok": report.good, "page": str(page), "seconds": seconds})
    else:
        _print(report, states)
        print(
            f"\nOpen {page}: a Puma 560 with sliders, its motion and the value of every line of its "
            f"equations, and {len(DEMO_PAGES)} pages more; {seconds:.1f} s in all"
        )
    if not report.good:
        raise typer.Exit(1)


def _write_page(report: Report, output: Path, robot: str, quantity: str) -> None:
    from ..io.files import write_whole
    from ..robot.writing import write_out

    d: Derivation = write_out(load_robot(robot), quantity, symbols=None if robot == "puma560" else "all")
    name = f"{robot}-{quantity.replace('_', '-')}.html"
    write_whole("demo", output / name, d.html())
    report.pages.append((robot, quantity, name, d.formalism, d.counts))
    for _, worst, count in d.checks:
        report.checks.append((f"{robot}: written out {quantity}, {count} states", worst, WRITTEN_LIMIT))


def _compile_puma(report: Report, states: int, step: Any) -> None:
    import numpy as np

    robot, rng = load_robot("puma560"), np.random.default_rng(0)
    q = robot.random(rng, states)
    v, a = rng.normal(size=(2, states, robot.nv))
    results: dict[str, Any] = {}
    for name in DEMO_QUANTITIES:
        step(f"puma560 {name}")
        args = {"inverse_dynamics": (q, v, a), "mass_matrix": (q,)}.get(name) or (
            q,
            v,
            results["inverse_dynamics"],
        )
        function = getattr(robot, name)
        results[name] = function(*args)
        seconds = shortest_time(lambda f=function, x=args, o=results[name]: f(*x, out=o), 1, 3)  # type: ignore[misc]
        one = [np.ascontiguousarray(x[0]) for x in args]
        call = shortest_time(lambda f=function, x=one: f(*x), 300, 3)  # type: ignore[misc]
        report.speeds.append((name, states / seconds, call))
        worst = _against_recursion(robot, name, [x[:SAMPLES] for x in args], results[name][:SAMPLES])
        report.checks.append((f"puma560: compiled {name}, {SAMPLES} states", worst, COMPILED_LIMIT))
    worst = _relative(results["forward_dynamics"], a)
    report.checks.append((f"puma560: forward after inverse dynamics, {states:,} states", worst, RETURN_LIMIT))


def _against_recursion(robot: Robot, name: str, args: list[Any], got: Any) -> float:
    """Worst difference of the machine code from the algorithm on plain floats, in no formalism's gauge."""
    from ..codegen.graph.evaluate import evaluate
    from ..compiler.trace import trace
    from ..model.quantities import quantity

    program = trace(robot.model, name)
    (expected,) = evaluate(program, dict(zip(quantity(name).state, args))).values()
    return _relative(got, expected)


def _relative(got: Any, expected: Any) -> float:
    """The largest difference of two arrays over the largest entry of the expected one."""
    import numpy as np

    return float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))


def _print(report: Report, states: int) -> None:
    rows = [(f"{robot} {quantity}", c["mul"], c["add"], c["trig"], c.get("hoisted", 0), formalism)
            for robot, quantity, _, formalism, c in report.pages]  # fmt: skip
    print_table("equations, written out", ("", "mul", "add", "trig", "hoisted", "formalism"), rows)
    print()
    checks = [(text, f"{worst:.1e}", f"{limit:.0e}", "ok" if worst <= limit else "FAILED")
              for text, worst, limit in report.checks]  # fmt: skip
    print_table(
        "checks against the plain recursion, relative to the largest value", ("", "worst", "limit", ""), checks
    )
    print()
    speeds = [
        (name, f"{rate / 1e6:.1f}", f"{1e9 / rate:.1f}", f"{call * 1e9:.0f}") for name, rate, call in report.speeds
    ]
    columns = ("", "million states a s", "ns a state", "one call ns")
    print_table(f"puma560, {states:,} random states, one of {os.cpu_count()} cores", columns, speeds)


def _index(report: Report, states: int) -> str:
    """The live page of the Puma 560, with what the demo found and links to the other pages."""
    from ..robot.view.page import live_robot

    return live_robot(load_robot("puma560").model, q=POSTURE, before=found(report, states))


def found(report: Report, states: int) -> str:
    """Tables of the pages, checks and speeds."""
    pages = [(f'<a href="{name}">{html.escape(robot)}: {quantity.replace("_", " ")}</a>', c["mul"], c["add"],
              c["trig"], c.get("hoisted", 0), html.escape(formalism))
             for robot, quantity, name, formalism, c in report.pages]  # fmt: skip
    checks = [(html.escape(text), f"{worst:.1e}", f"{limit:.0e}", "ok" if worst <= limit else "<b>failed</b>")
              for text, worst, limit in report.checks]  # fmt: skip
    speeds = [(name.replace("_", " "), f"{rate / 1e6:.1f}", f"{1e9 / rate:.1f}", f"{call * 1e9:.0f}")
              for name, rate, call in report.speeds]  # fmt: skip
    parts = (
        ("Pages of equations", _grid(("quantity", "mul", "add", "trig", "hoisted", "formalism"), pages)),
        ("Checks", _grid(("difference relative to the largest value", "worst", "limit", ""), checks)),
        (f"Speed: Puma 560, {states:,} random states, one core of this machine",
         _grid(("quantity", "million states a second", "ns a state", "one call from Python, ns"), speeds)),
    )  # fmt: skip
    opened = (" open", "", "")
    return "".join(
        f"<details{at}><summary>{title}</summary>{body}</details>" for at, (title, body) in zip(opened, parts)
    )


def _grid(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    head = "".join(f"<th>{c}</th>" for c in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>"
