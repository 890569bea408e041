"""The pairs of a robot's geoms that may touch each other, by MuJoCo's rules."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import combinations, combinations_with_replacement

from .contact import ContactPair, Geom
from .description import Model
from .draft import shorten

SOLIDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box", "hull")
GEOM_ORDER = ("plane", "hfield", *SOLIDS)  # what stands first of a pair
# kinds of geoms whose distance is known, in that order
TOUCHING_PAIRS = (
    *(("plane", kind) for kind in SOLIDS),
    *(("sphere", kind) for kind in ("sphere", "capsule", "cylinder")),
    ("capsule", "capsule"),
    ("capsule", "cylinder"),
    ("sphere", "box"),
    ("capsule", "box"),
)
# kinds whose places of contact are searched for in machine code, likewise; a hull on a plane that is even
SEARCHED_PAIRS = (
    *((kind, "hull") for kind in ("plane", *SOLIDS)),
    *(("hfield", kind) for kind in SOLIDS),
    *(("sphere", "ellipsoid"), ("capsule", "ellipsoid")),
    *combinations_with_replacement(("ellipsoid", "cylinder", "box"), 2),
)
LEFT_OUT = "left out of contact: "  # how notes begin on what touches in a file and not here
MOST_GEOMS = 500  # of a robot whose pairs are looked through where it is loaded


def touching_pairs(model: Model) -> Iterator[tuple[Geom, Geom, ContactPair | None]]:
    """Geoms whose bits meet, on bodies that move against each other and of which none hangs on the other.

    Links welded together are one body. What hangs on the ground itself may touch it; links of motion capture are
    bodies apart, which like the ground touch nothing that stands. Explicit pairs come last.
    """
    led = {link.name for link in model.links if link.mocap}
    welded, standing = weld_bodies(model, led), led | {model.root}
    above = _carriers(model, welded)
    excluded = {frozenset((x.link_a, x.link_b)) for x in model.exclusions}
    explicit = {frozenset((pair.geom_a, pair.geom_b)) for pair in model.pairs}
    nested = "filterparent" not in model.stepping.disabled
    for a, b in combinations(model.geoms, 2):
        if not (a.contype & b.conaffinity or b.contype & a.conaffinity):
            continue
        one, two = welded[a.link], welded[b.link]
        if one == two or {one, two} <= standing or frozenset((a.link, b.link)) in excluded:
            continue
        if frozenset((a.name, b.name)) in explicit:
            continue
        if nested and model.root not in (one, two) and (above[one] == two or above[two] == one):
            continue
        yield a, b, None
    named = {geom.name: geom for geom in model.geoms}
    for pair in model.pairs:
        yield named[pair.geom_a], named[pair.geom_b], pair


def strangers(model: Model) -> tuple[Geom, Geom] | None:
    """The first two geoms that may touch and belong to different free bodies, or to one and to the world."""
    tree = {model.root: model.root}
    for joint in model.joints:
        tree[joint.child] = joint.child if joint.kind == "free" else tree[joint.parent]
    if len({tree[x.link] for x in model.geoms}) < 2 or "contact" in model.stepping.disabled:
        return None
    return next(((a, b) for a, b, _ in touching_pairs(model) if tree[a.link] != tree[b.link]), None)


def weld_bodies(model: Model, apart: Container[str] = ()) -> dict[str, str]:
    """By link, the first of those that it is welded to; links `apart` begin bodies of their own."""
    body_of = {model.root: model.root}
    for joint in model.joints:
        welded = joint.kind == "fixed" and joint.child not in apart
        body_of[joint.child] = body_of[joint.parent] if welded else joint.child
    return body_of


def adjacent_links(model: Model) -> set[frozenset[str]]:
    """Pairs of welded bodies of which one hangs on the other, by their first links."""
    return {frozenset(pair) for pair in _carriers(model, weld_bodies(model)).items()}


def _carriers(model: Model, welded: dict[str, str]) -> dict[str, str]:
    """By welded body, the one that it hangs on; what neither weighs nor touches is between joints of one body."""
    real = {geom.link for geom in model.geoms} | {model.root}
    real |= {link.name for link in model.links if link.inertial or link.shapes}
    real = {welded[link] for link in real}
    above = {model.root: model.root}
    for joint in model.joints:
        if welded[joint.child] == joint.child:
            parent = welded[joint.parent]
            above[joint.child] = parent if parent in real else above[parent]
    return above


def as_ruled(a: Geom, b: Geom) -> tuple[Geom, Geom]:
    """Two geoms as their rule takes them."""
    return (a, b) if GEOM_ORDER.index(a.kind) <= GEOM_ORDER.index(b.kind) else (b, a)


def without_rule(model: Model) -> str:
    """The pairs that may touch and have no rule, as kinds with their names; empty where there is none."""
    if len(model.geoms) > MOST_GEOMS or "contact" in model.stepping.disabled:
        return ""
    names: dict[str, list[str]] = {}
    for a, b in (as_ruled(a, b) for a, b, _ in touching_pairs(model)):
        if (a.kind, b.kind) not in TOUCHING_PAIRS:
            names.setdefault(f"{a.kind}-{b.kind}", []).append(f"{a.name!r} and {b.name!r}")
    return shorten([f"{kind} ({shorten(pairs)})" for kind, pairs in names.items()])
