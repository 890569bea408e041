"""Default classes of an MJCF file: what an element has that does not say otherwise, by MuJoCo's rules."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

from ....errors import ModelError
from ....io.xml import Element, parse_number
from ..schema import nonzero

Attributes = Mapping[str, str]
Usual = dict[str, dict[str, str]]  # tag -> attributes
Classes = dict[str, Usual]  # by name
MOST_CLASSES = 10_000

# attributes of which fewer numbers may stand there than a default has: the others stay
PARTIAL = {
    *("friction", "solref", "solimp", *(f"sol{x}{y}" for x in ("ref", "imp") for y in ("limit", "friction"))),
    *("damping", "stiffness", "size", "gear", "gainprm", "biasprm", "dynprm", "fluidcoef", "surfacevel"),
}
DEFAULTED = ("joint", "geom", "site", "mesh", "pair", "equality", "tendon")  # what is read beside actuators
# sections whose elements share one default, and that default
SHARED_DEFAULTS = {"tendon": "tendon", "equality": "equality"}

# kinds of actuators -> the parameters of their own; all other attributes are shared by all kinds
SERVO = ("kp", "kv", "dampratio")
MUSCLE = {
    "range": "0.75 1.05", "force": "-1", "scale": "200", "lmin": "0.5", "lmax": "1.6", "vmax": "1.5",
    "fpmax": "1.3", "fvmax": "1.2",
}  # fmt: skip
GENERAL = ("gaintype", "gainprm", "biastype", "biasprm", "dyntype", "dynprm", "actdim", "actearly")
PARAMETERS: dict[str, tuple[str, ...]] = {
    "general": GENERAL,
    "motor": (),
    "position": (*SERVO, "timeconst", "inheritrange"),
    "velocity": ("kv",),
    "intvelocity": (*SERVO, "inheritrange"),
    "damper": ("kv",),
    "orientation": SERVO,
    "pid": ("kp", "kv", "ki", "imax", "slewmax", "dampratio"),
    "cylinder": ("timeconst", "area", "diameter", "bias"),
    "muscle": ("timeconst", "tausmooth", *MUSCLE),
    "adhesion": ("gain",),
    "dcmotor": (),
    "plugin": (),
}
OWN = {name for names in PARAMETERS.values() for name in names} - {"inheritrange"}


def laid_over(usual: Attributes, given: Attributes) -> dict[str, str]:
    """Attributes over those of a default class: of some numbers those that are not given stay as they were."""
    laid = {**usual, **given}
    for key in given:
        if key not in PARTIAL or key not in usual:
            continue
        numbers = given[key].split()
        laid[key] = " ".join([*numbers, *usual[key].split()[len(numbers) :]])
    if "posrange" in laid:  # another name for it
        laid["ctrlrange"] = laid.pop("posrange")
    if "kv" in laid and "dampratio" in laid:  # two ways to say one thing
        laid.pop("dampratio" if "kv" in given else "kv")
    return laid


def read_defaults(classes: Classes, top: Element) -> None:
    """Every class with what it inherits, outer classes first; classes share what they do not change."""
    stack: list[tuple[Element, str, Usual]] = [(top, top.get("class") or "main", {})]
    while stack:
        element, name, above = stack.pop()
        usual = dict(classes.get(name) or above)
        for child in element.children:
            if child.tag in PARAMETERS:
                usual = _with_actuator(above, usual, child)
            elif child.tag in DEFAULTED:
                usual[child.tag] = laid_over(usual.get(child.tag, {}), child.attributes)
        classes[name] = usual
        if len(classes) > MOST_CLASSES:
            raise ModelError(f"line {element.line}: the file has more than {MOST_CLASSES} default classes")
        if element is top:
            classes["main"] = usual
        stack += [(child, child.get("class"), usual) for child in element.all("default")]


def _with_actuator(above: Usual, usual: Usual, element: Element) -> Usual:
    """A class in which one more default of an actuator stands: there is one for all kinds.

    Each kind has the parameters of the nearest class whose default is of its kind, or a <general> of its kind of
    gain; a <general> has those of any.
    """
    tag, shared = element.tag, {a: x for a, x in element.attributes.items() if a not in OWN}
    merged = laid_over(usual.get(tag, {}), element.attributes)
    out = {**usual, tag: merged}
    for kind in PARAMETERS:
        if kind != tag:
            kept = {a: x for a, x in above.get(kind, {}).items() if a in OWN}
            both = {a: x for a, x in usual.get(kind, {}).items() if a not in OWN}
            out[kind] = {**laid_over(both, shared), **kept}
    if tag == "general":
        for kind, parameters in _servos(merged).items():
            out[kind] = {a: x for a, x in out[kind].items() if a not in OWN} | parameters
    else:
        out["general"] = {a: x for a, x in out["general"].items() if a not in OWN} | as_general(tag, merged)
    return out


def _servos(general: Attributes) -> dict[str, dict[str, str]]:
    """The parameters of other kinds that have the gains of a <general>."""
    gains, bias = (f"{general.get(name, '')} 0 0 0".split() for name in ("gainprm", "biasprm"))
    gain = gains[0] if general.get("gainprm") else "1"
    if general.get("dyntype") == "pid":
        numbers = *(_minus(x) for x in bias[1:3]), gains[0], *f"{general.get('dynprm', '')} 0 0".split()[:2]
        return {"pid": dict(zip(PARAMETERS["pid"], numbers))}
    if general.get("gaintype", "fixed") == "affine":
        return {"damper": {"kv": _minus(gains[2])}}
    if general.get("gaintype", "fixed") != "fixed":
        return {}
    damping = bias[2] if general.get("biasprm") else "0"
    ratio = nonzero(damping) and not damping.startswith("-")
    servo = {"kp": gain, **({"dampratio": damping} if ratio else {"kv": _minus(damping)})}
    slow = {"timeconst": "1"} if general.get("dyntype") == "filterexact" else {}
    return {"position": {**servo, **slow}, "intvelocity": servo, "velocity": {"kv": gain}}


def _minus(number: str) -> str:
    """A number as text with the other sign; zero has none."""
    return number[1:] if number.startswith("-") else f"-{number.lstrip('+')}" if nonzero(number) else number


def as_general(tag: str, given: Attributes) -> dict[str, str]:
    """The parameters of an actuator of any kind as those of a <general>; of what has no such form, that it is of
    its own kind."""
    kp, kv = given.get("kp", "1"), given.get("kv", "0")
    plain = {"gaintype": "fixed", "biastype": "none", "dyntype": "none", "gainprm": "1 0 0", "biasprm": "0 0 0"}
    if tag == "general":
        return {a: x for a, x in given.items() if a in GENERAL}
    if tag == "motor":
        return plain
    if tag in ("position", "intvelocity"):
        damping, slow = given.get("dampratio") or _minus(kv), nonzero(given.get("timeconst", "0"))
        dynamics = "integrator" if tag == "intvelocity" else "filterexact" if slow else "none"
        servo = {"gainprm": f"{kp} 0 0", "biastype": "affine", "biasprm": f"0 {_minus(kp)} {damping}"}
        return {**plain, **servo, "dyntype": dynamics, "dynprm": given.get("timeconst", "1") if slow else "1"}
    if tag == "velocity":
        kv = given.get("kv", "1")
        return {**plain, "gainprm": f"{kv} 0 0", "biastype": "affine", "biasprm": f"0 0 {_minus(kv)}"}
    if tag == "damper":
        return {**plain, "gaintype": "affine", "gainprm": f"0 0 {_minus(kv)}"}
    if tag == "cylinder":
        across = given.get("diameter")
        area = repr(0.25 * pi * parse_number(across) ** 2) if across else given.get("area") or "1"
        moved = {"gainprm": area, "biastype": "affine", "biasprm": given.get("bias", "0")}
        return {**plain, **moved, "dyntype": "filter", "dynprm": given.get("timeconst", "1")}
    if tag == "muscle":
        numbers = " ".join(given.get(x, usual) for x, usual in MUSCLE.items())
        times = f"{given.get('timeconst', '0.01 0.04')} {given.get('tausmooth', '0')}"
        return dict.fromkeys(("gaintype", "biastype", "dyntype"), tag) | {
            "gainprm": numbers, "biasprm": numbers, "dynprm": times,
        }  # fmt: skip
    return {"gaintype": tag, "biastype": "none" if tag == "adhesion" else tag, "dyntype": tag}


def as_controller(element: Element) -> Element:
    """A <general> that is a PID controller or a DC motor as <pid> or <dcmotor>; all others as they are."""
    tag, get = element.get("gaintype"), element.get
    alike = not nonzero(get("biasprm", "0").split(" ")[0]) and "true" not in (get("actearly"), get("actlimited"))
    if element.tag != "general" or tag not in ("pid", "dcmotor") or (tag == "pid" and not alike):
        return element
    usual = {"gainprm": "1", "biasprm": "0", "dynprm": "1"}
    g, b, d = ([*get(key, x).split(), *["0"] * 10] for key, x in usual.items())
    if tag == "pid":
        ratio = nonzero(b[2]) and not b[2].startswith("-")
        numbers = {"kp": _minus(b[1]), "ki": g[0], "imax": d[0], "slewmax": d[1]}
        numbers |= {"dampratio": b[2]} if ratio else {"kv": _minus(b[2])}
    else:
        numbers = {"resistance": g[0], "motorconst": g[1], "inductance": f"0 {d[0]}", "saturation": f"0 0 {d[1]}"}
        numbers |= {"thermal": f"{d[2]} {d[3]} 0 {g[2]} {g[3]} {d[4]}", "cogging": " ".join(b[:3])}
        numbers |= {"controller": " ".join((*g[4:7], *d[7:9], g[7])), "lugre": " ".join((*d[5:7], *b[3:6]))}
    return Element(
        tag, {**{a: x for a, x in element.attributes.items() if a not in GENERAL}, **numbers}, element.line
    )
