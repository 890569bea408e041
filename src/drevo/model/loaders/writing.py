"""Parts that the writers of XML formats share: elements as lines of text, and what a format cannot hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from ...errors import ModelError
from ..description import Joint, JointDynamics, Model
from ..draft import Draft, listed
from ..validation import joints_depth_first

TextValue = str | float | tuple[float, ...]

SHARED_JOINT_KINDS = {
    kind: kind for kind in ("fixed", "revolute", "continuous", "prismatic")
}  # alike in URDF and SDF
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_SELDOM_SAID = {
    "quadratic": "the quadratic damping", "cubic": "the cubic damping", "offset": "the constant force",
    "stiffness2": "the square in the spring", "stiffness3": "the cube in the spring",
    "rest": "the rest of the spring", "rotor": "the spinning rotor",
}  # fmt: skip


@dataclass(slots=True)
class Written:
    """A robot as a format has it.

    model: what the text says, with the robot's coordinates in their order; joints may be chains of plainer ones.
    lost: what acts on the motion and the format cannot say; left_out: the rest of what is not in the text.
    """

    model: Model
    lines: list[str] = field(default_factory=list)  # of an XML format
    lost: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def begin(
    robot: Model,
    model: Model,
    kinds: Iterable[str],
    reserved: str = "",
    closes: bool = False,
    says: tuple[str, ...] = (),
) -> Written:
    """The robot told as `model`, with what only Drevo's formats hold; names that XML cannot hold are refused.

    closes: the format has words for loops, couplings and tendons; says: for these fields of what acts in a joint.
    """
    bad = re.compile(f"{_NOT_XML.pattern}{reserved and '|'}{reserved}")
    names = [x.name for part in (model.links, model.joints) for x in part]
    names += [x.name for part in (model.geoms, model.actuators, model.sensors) for x in part]
    for name in (model.name, *names):
        if bad.search(name):
            raise ModelError(
                f"the name {name!r} has characters that the format cannot hold; save the robot as TOML or JSON"
            )
    out = Written(model)
    if not closes:
        held = {"closed loops": model.closures, "tendons": sum(tendon.pulls for tendon in model.tendons)}
        out.lost += [f"its {count} {term[: -1 if count == 1 else None]}" for term, count in held.items() if count]
    if model.keyframes:
        out.left_out.append(f"its keyframes {listed(key.name for key in model.keyframes)}")
    for term, named in ((x, said) for x, said in _SELDOM_SAID.items() if x not in says):
        if affected := [j.name for j in robot.joints if getattr(j.dynamics or JointDynamics(), term)]:
            out.lost.append(f"{named} of {listed(affected)}")
    if "mocap" not in says and (given := [link.name for link in robot.links if link.mocap]):
        out.lost.append(f"the motion capture of {listed(given)}")
    if "gravcomp" not in says and (lifted := [link.name for link in robot.links if link.gravcomp]):
        out.lost.append(f"the compensated weight of {listed(lifted)}")
    if odd := [j for j in model.joints if j.kind not in kinds]:
        said = ", ".join(sorted({j.kind for j in odd}))
        out.lost.append(f"joints of type {said} ({listed(j.name for j in odd)}), which only Drevo reads there")
    if [joint.name for joint in read_order(model) if joint.nq] != [joint.name for joint in model.moving_joints]:
        out.left_out.append("the order of its coordinates, which is read depth first (go by the names of joints)")
    return out


def read_order(model: Model) -> list[Joint]:
    """The joints as they are read from a file."""
    return joints_depth_first(Draft(model.name, list(model.links), list(model.joints)))


def element(tag: str, *inside: Iterable[str], **attributes: TextValue | None) -> list[str]:
    """An element as lines; attributes that are None are left out."""
    given = "".join(f" {key}={quoteattr(as_written(x))}" for key, x in attributes.items() if x is not None)
    held = [line for part in inside for line in part]
    if not held:
        return [f"<{tag}{given}/>"]
    return [f"<{tag}{given}>", *(f"  {line}" for line in held), f"</{tag}>"]


def text_element(tag: str, value: TextValue | None, **attributes: TextValue | None) -> Iterator[str]:
    """An element with its value as text; nothing for None."""
    if value is not None:
        given = "".join(f" {key}={quoteattr(as_written(x))}" for key, x in attributes.items() if x is not None)
        yield f"<{tag}{given}>{escape(as_written(value))}</{tag}>"


def as_written(value: TextValue) -> str:
    """Numbers so that they are read back exactly."""
    if isinstance(value, str):
        return value
    return " ".join(map(exact_number, value)) if isinstance(value, tuple) else exact_number(value)


def exact_number(x: float) -> str:
    """Exact, and 0 for -0."""
    return repr(float(x) + 0.0).removesuffix(".0")
