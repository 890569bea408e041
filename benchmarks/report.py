"""What `peers.py` found, as Markdown tables, and its ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LABELS = {
    "pose": "pose of all links",
    "inverse_dynamics": "inverse dynamics",
    "mass_matrix": "mass matrix",
    "forward_dynamics": "forward dynamics",
    "inverse_dynamics_derivatives": "d inverse",
    "forward_dynamics_derivatives": "d forward",
    "bias": "bias",
}
SIX = tuple(LABELS)[:6]
ROBOTS = ("panda", "go2", "talos")
NOTES = {
    "cache": (
        "ns of Drevo (ratio to Pinocchio's C++, the better of the shipped library and its headers with -O3 "
        '-march=native, in a bare loop). `layout="batch_last", packed=True`, `out=`, batches with their '
        "results in 32, 64 or 256 kB, the fastest of the three, a fresh batch each window."
    ),
    "scalar": ("One state at a time: a call with `out=` less the same call of a function that computes nothing."),
    "mujoco": "The stages of a quantity called from C on the same states; its M stays sparse.",
    "memory": (
        "100,000 states in (B, n) arrays; M packed. Pinocchio: `rneaInParallel`, `abaInParallel`; `crba` in a "
        "C++ loop in cache, times one core."
    ),
    "call": "One call with arrays, and with `out=`; Pinocchio through its own Python bindings.",
}

Cells = dict[tuple[str, str, str], dict[str, float]]


def cells_of(document: dict[str, Any]) -> Cells:
    """Nanoseconds by (section, robot, quantity) and contender."""
    out: Cells = {}
    for c in document["cells"]:
        out.setdefault((c["section"], c["robot"], c["quantity"]), {})[c["who"]] = c["ns"]
    return out


def best(row: dict[str, float], start: str) -> float:
    """The best of a contender's variants."""
    return min((x for who, x in row.items() if who.startswith(start)), default=math.nan)


def own(cells: Cells, section: str, robot: str, quantity: str) -> float:
    """Drevo's figure: of a scalar kernel, less what a call costs."""
    row = cells.get((section, robot, quantity), {})
    return row.get("drevo", math.nan) - (row.get("nothing", math.nan) if section == "scalar" else 0.0)


def ratios(document: dict[str, Any]) -> dict[str, float]:
    """peer / Drevo for every cell that has both."""
    cells, out = cells_of(document), {}
    for section, robot, quantity in cells:
        row, at = cells[section, robot, quantity], f"{robot} {quantity}"
        if section in ("cache", "scalar"):
            ns, peers = own(cells, section, robot, quantity), cells.get(("cache", robot, quantity), {})
            out[f"{section} {at}"] = best(peers, "pin") / ns
            out[f"mujoco {section} {at}"] = best(peers, "mujoco") / ns
            if "drevo float32" in row:
                out[f"float32 {at}"] = row["drevo"] / row["drevo float32"]
        elif section == "memory":
            out[f"memory {at}"] = best(row, "pin 1") / row["drevo 1"]
            many = max(row, key=lambda who: (who.startswith("drevo"), who))
            if many != "drevo 1":
                out[f"memory threads {at}"] = best(row, many.replace("drevo", "pin")) / row[many]
                out[f"threads {at}"] = row["drevo 1"] / row[many]
        else:
            out[f"call {at}"] = row["pin"] / row["drevo"]
            out[f"call out= {at}"] = row["pin"] / row["drevo out="]
    return {name: x for name, x in out.items() if math.isfinite(x)}


# --- Markdown ----------------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table; the first column is text, the others numbers."""
    head = list(head)
    out = ["| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    return [*out, *("| " + " | ".join(row) + " |" for row in rows), ""]


def markdown(document: dict[str, Any]) -> str:
    """The tables, with what they mean."""
    lines = ["# Speed", "", f"Made by `make bench` on {document['date']}: interleaved in one tree of processes, "
             f"least of {document['rounds']} windows, nanoseconds, one core unless said."]  # fmt: skip
    lines += [", ".join(f"{k} {v}" for k, v in document["machine"].items()) + ".", ""]
    load = document.get("load", 0.0)
    if load > document["cores"] / 2:
        lines += [
            f"The machine was busy, its load {load:g} on {document['cores']} cores: what threads gain was not"
        ]
        lines += ["measurable; ratios on one core hold, as everybody was interleaved.", ""]
    lines += [f"{who} is missing: {why}." for who, why in document["missing"].items()]
    lines += ["![The same as bars](results.svg)", ""]
    sections = (_cache, _mujoco, _memory, _calls, _widths, _others, _costs)
    return "\n".join(lines + [line for section in sections for line in section(document)])


def _cell(ns: float, ratio: float | None) -> str:
    if math.isnan(ns):
        return "-"
    return f"{ns:.1f}" if ratio is None else f"{ns:.1f} ({ratio:.1f})"


def in_cache(document: dict[str, Any]) -> list[str]:
    """The main table."""
    cells, found = cells_of(document), ratios(document)
    rows = []
    for section, robot in (("cache", "panda"), ("cache", "go2"), ("cache", "talos"), ("scalar", "panda")):
        names = [f"{section} {robot} {q}" for q in SIX]
        found_cells = [_cell(own(cells, section, robot, q), found.get(n)) for q, n in zip(SIX, names)]
        rows.append([f"{robot}, {'batch' if section == 'cache' else 'scalar kernel'}", *found_cells])
    return table(["", *(LABELS[q] for q in SIX)], rows)


def _cache(document: dict[str, Any]) -> list[str]:
    cells, peers = cells_of(document), []
    for robot in ROBOTS:
        for who in ("pin shipped", "pin native"):
            found_row = [best(cells.get(("cache", robot, q), {}), who) for q in SIX]
            peers.append([f"{robot}, {who}", *(f"{x:.0f}" for x in found_row)])
    head = ["", *(LABELS[q] for q in SIX)]
    lines = ["## In cache, structure of arrays", "", *in_cache(document), NOTES["cache"]]
    lines += ["", NOTES["scalar"], ""]
    return [*lines, "Pinocchio's C++, ns:", "", *table(head, peers)]


def _mujoco(document: dict[str, Any]) -> list[str]:
    cells, found = cells_of(document), ratios(document)
    rows = []
    for robot in ROBOTS:
        for q in SIX[:4]:
            peer = best(cells.get(("cache", robot, q), {}), "mujoco")
            names = [f"mujoco {s} {robot} {q}" for s in ("cache", "scalar")]
            figures = [own(cells, s, robot, q) for s in ("cache", "scalar")]
            made = [_cell(x, found.get(n)) for x, n in zip(figures, names)]
            rows.append([f"{robot}, {LABELS[q]}", f"{peer:.0f}", *made])
    head = ("", "MuJoCo C", "Drevo, batch", "Drevo, scalar kernel")
    return ["## Against MuJoCo's C", "", NOTES["mujoco"], "", *table(head, rows)]


def _memory(document: dict[str, Any]) -> list[str]:
    cells, found, n = cells_of(document), ratios(document), document["cores"]
    rows = []
    for robot in ROBOTS:
        for q in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            row, at = cells.get(("memory", robot, q), {}), f"{robot} {q}"
            one = _cell(row.get("drevo 1", math.nan), found.get(f"memory {at}"))
            many = _cell(row.get(f"drevo {n}", math.nan), found.get(f"memory threads {at}"))
            gain = found.get(f"threads {at}", math.nan)
            rows.append([f"{robot}, {LABELS[q]}", f"{best(row, 'pin 1'):.0f}", one, many, f"{gain:.2f}"])
    head = ("", "Pinocchio, 1 core", "Drevo, 1 core", f"Drevo, {n} cores", f"{n} cores / 1")
    return ["## 100,000 states in ordinary arrays", "", NOTES["memory"], "", *table(head, rows)]


def _calls(document: dict[str, Any]) -> list[str]:
    cells, found = cells_of(document), ratios(document)
    rows = []
    for robot in ROBOTS:
        for q in SIX:
            row = cells.get(("call", robot, q), {})
            names = (("drevo", f"call {robot} {q}"), ("drevo out=", f"call out= {robot} {q}"))
            made = [_cell(row.get(who, math.nan), found.get(n)) for who, n in names]
            rows.append([f"{robot}, {LABELS[q]}", f"{row.get('pin', math.nan):.0f}", *made])
    return ["## One call from Python", "", NOTES["call"], "", *table(("", "pin", "Drevo", "Drevo, out="), rows)]


def _widths(document: dict[str, Any]) -> list[str]:
    cells, found = cells_of(document), ratios(document)
    rows = []
    for robot in ROBOTS:
        ns = own(cells, "cache", robot, "forward_dynamics")
        rate = document["flops"].get(robot, math.nan) / ns
        singles = [f"{found.get(f'float32 {robot} {q}', math.nan):.2f}" for q in SIX[1:4:2]]
        rows.append([robot, *singles, f"{rate:.0f}", f"{rate / document['peak']:.0%}"])
    head = ("", "float64 / float32, inverse", "forward", "GFLOP/s of forward dynamics", "of the peak")
    note = (
        f"Measured peak of fused multiply-adds, eight lanes, one core: {document['peak']:.0f} GFLOP/s. A kernel's "
        "operations: products, sums and divisions of its graph, and 36 for a pair of sine and cosine."
    )
    return ["## Widths and peak", "", note, "", *table(head, rows)]


def _others(document: dict[str, Any]) -> list[str]:
    others = document.get("others") or {}
    rows = [
        [f"{c['who']}, {c['robot']}, {LABELS[c['quantity']]}", f"{c['ns']:.0f}", f"{c['drevo']:.1f}",
         f"{c['ns'] / c['drevo']:.0f}"] for c in others.get("cells", ())
    ]  # fmt: skip
    lines = ["## Other peers", "", *table(("", "ns", "Drevo, batch", "times"), rows)] if rows else []
    return [*lines, *(f"{who} is missing: {why}." for who, why in others.get("missing", {}).items())]


def _costs(document: dict[str, Any]) -> list[str]:
    rows = []
    for c in document.get("costs", ()):
        names = "all six" if len(c["quantities"]) == len(SIX) else ", ".join(LABELS[q] for q in c["quantities"])
        rows.append([f"{c['robot']}: {names}", f"{c['seconds']:.2f}", f"{c['MB']:.0f}"])
    starts = [[name, f"{x * 1e3:.0f}"] for name, x in document.get("starts", {}).items()]
    lines = ["", "## Compiling, nothing cached", "", *table(("", "s of the processor", "MB of the process"), rows)]
    about = "From the start of a process to the first inverse dynamics of the Panda."
    return [*lines, "## Cold start", "", about, "", *table(("", "ms"), starts)]


def page(document: dict[str, Any]) -> str:
    """What docs/speed.md shows: the main table with its machine and date."""
    about = ", ".join(f"{k} {v}" for k, v in document["machine"].items())
    return "\n".join([f"{about}; {document['date']}.", "", *in_cache(document)]).rstrip()


def summary(document: dict[str, Any]) -> str:
    """What the README shows."""
    cells, rows = cells_of(document), []
    for robot in ROBOTS:
        for q in SIX[1:4]:
            memory, cache, call = (cells.get((s, robot, q), {}) for s in ("memory", "cache", "call"))
            own_figures = [f"**{x:.0f}**" for x in (cache["drevo"], memory["drevo 1"], call["drevo"])]
            pin, mujoco, one = (f"{x:.0f}" for x in (best(cache, "pin"), best(cache, "mujoco"), call["pin"]))
            rows.append([f"{robot}, {LABELS[q]}", *own_figures[:2], pin, mujoco, own_figures[2], one])
    head = ("", "Drevo, in cache", "from memory", "Pinocchio C++", "MuJoCo C", "one call: Drevo", "pin")
    return "\n".join(table(head, rows)).rstrip()


def insert(file: Path, marker: str, text: str) -> None:
    """Put a text between <!-- marker --> and <!-- /marker --> of a page."""
    old = file.read_text(encoding="utf-8")
    start, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->"
    before, rest = old.split(start)
    file.write_text(before + start + text + "\n" + end + rest.split(end)[1], encoding="utf-8")
