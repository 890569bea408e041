"""Features of observations beside q and v: places, inertias and rates of bodies, over any scalar.

Inertias and rates are about the robot's centre of mass in the world's axes, as MuJoCo's cinert and cvel are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ..contact.pairs import contact_candidates
from ..errors import InputError
from ..mechanics.algorithms.kinematics import Pose, Poses, placed_bodies, step_velocity
from ..mechanics.joints import NO_MOTION, Motion
from ..mechanics.scalar import Scalar, Vector
from ..mechanics.spatial import Mat, Sym, Vec, congruence
from ..mechanics.tree import Tree
from ..model.description import Inertial, Model


class Sight:
    """Features of an evaluation, computed where they are asked for: parts of `tasks.Look` by `part`.

    looks: the bodies of a file ("*"), or links, "LINK" or "LINK x y z" with one point for all. ask: Q, V and
    forces (3 places,), N, on the second geom of each of `contact_candidates`, in world axes.
    """

    def __init__(self, model: Model, tree: Tree, looks: Sequence[str], ask: Callable[[str], Vector]) -> None:
        self.model, self.tree, self.ask = model, tree, ask
        named = [look.split() for look in looks]
        whole = [link.name for link in model.links[1:] if link.inertial]
        self.links = whole if looks == ("*",) else [x[0] for x in named]
        self.point = Vec(*map(float, named[0][1:] if len(named[0]) == 4 else (0.0, 0.0, 0.0)))
        self.weighs = {x.name: x.inertial for x in model.links if x.inertial and x.inertial.mass}

    @property
    def sizes(self) -> dict[str, int]:
        """The number of scalars in each part, by its name."""
        n = len(self.links)
        return {"bodies": 3 * n, "centre": 3, "inertias": 10 * n, "rates": 6 * n, "wrenches": 6 * n}

    def part(self, name: str) -> list[Scalar]:
        """places of links (links, 3); centre of mass of the robot (3,); inertias (links, 10): xx yy zz xy xz yz
        about the centre, m times the way from there, m; rates (links, 6): angular, linear at the centre; wrenches
        (links, 6) of contacts: torque about the centre, force."""
        if name == "centre":
            return list(self.centre)
        if name == "wrenches":
            return self._wrenches()
        by_link: dict[str, Callable[[str], Sequence[Scalar]]]
        by_link = {"bodies": self._place, "inertias": self._inertia, "rates": self._rates}
        return [x for link in self.links for x in by_link[name](link)]

    @cached_property
    def poses(self) -> Poses:
        return placed_bodies(self.tree, self.ask("Q"))

    @cached_property
    def at(self) -> dict[str, Pose]:
        frames = {link.name: self.tree.frames[link.name] for link in self.model.links}
        return {name: self.poses[f.body].compose(f.R, f.p) for name, f in frames.items()}

    @cached_property
    def centre(self) -> Vec:
        total = sum(body.mass for body in self.weighs.values())
        centre = Vec(0.0, 0.0, 0.0)
        for link, body in self.weighs.items():
            centre = centre + (self.at[link].p + self.at[link].R @ Vec(*body.com)) * (body.mass / total)
        return centre

    @cached_property
    def moving(self) -> dict[int, Motion]:
        """By body its motion in its own axes."""
        tree, found = self.tree, {-1: NO_MOTION}
        for i, (b, X, rate) in enumerate(
            zip(tree.bodies, tree.placements(self.ask("Q")), tree.rates(self.ask("V")))
        ):
            found[i] = step_velocity(X, found[b.parent], rate)
        return found

    def _place(self, link: str) -> Vec:
        return self.at[link].p + self.at[link].R @ self.point

    def _inertia(self, link: str) -> list[Scalar]:
        pose, body = self.at[link], self.weighs.get(link) or Inertial()
        way = pose.p + pose.R @ Vec(*body.com) - self.centre
        own = congruence(pose.R, Sym.of(Mat.of(body.tensor)))
        x, y, z, m = *way, body.mass
        about = Sym(
            own.xx + m * (y * y + z * z), own.xy - m * (x * y), own.xz - m * (x * z),
            own.yy + m * (x * x + z * z), own.yz - m * (y * z), own.zz + m * (x * x + y * y),
        )  # fmt: skip
        return [about.xx, about.yy, about.zz, about.xy, about.xz, about.yz, *(way * m), m]

    def _rates(self, link: str) -> list[Scalar]:
        body = self.tree.frames[link].body
        R, p = self.poses[body]
        w = R @ self.moving[body].w
        return [*w, *(R @ self.moving[body].v + w.cross(self.centre - p))]

    def _wrenches(self) -> list[Scalar]:
        found = {link: (Vec(0.0, 0.0, 0.0), Vec(0.0, 0.0, 0.0)) for link in self.links}
        places = contact_candidates(self.model, searched=True)
        if any(x.searched for x in places):
            raise InputError(
                f"robot {self.model.name!r} has no wrenches of contacts that are searched for; take forces"
            )
        forces = self.ask("forces") if places else []
        for k, x in enumerate(places):
            force = Vec(*forces[3 * k : 3 * k + 3])
            torque = (x.touch(self.poses).point - self.centre).cross(force)
            for geom, sign in zip(x.geoms, (-1.0, 1.0)):
                if geom.link in found:
                    a, b = found[geom.link]
                    found[geom.link] = a + torque * sign, b + force * sign
        return [part for pair in found.values() for part in pair]
