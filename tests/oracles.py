"""Pinocchio and MuJoCo in the coordinates and conventions of Drevo's public face.

Both are built from the words of the contract, not from Drevo's own chains: a joint is placed by origin and
rotation, then moved along or about its axis; cylindrical, universal and planar joints are chains of plain ones; a
mimic joint is a coordinate of its own to the oracle, and the substitution q_full = G q + g0 is made outside.
Pinocchio wants every subtree contiguous (its CRBA is silently wrong otherwise), so joints go in depth first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

from drevo.model.description import Inertial, Joint, Model

Array = np.ndarray
FRAMES = {"local": pin.LOCAL, "world": pin.WORLD, "local_world_aligned": pin.LOCAL_WORLD_ALIGNED}


@dataclass(frozen=True)
class Step:
    """One plain joint of a joint's chain: kind, axis, and how far it goes per unit of coordinate `at`."""

    kind: str  # hinge, slide, screw, ball, free
    at: int = 0
    axis: tuple[float, ...] = (0.0, 0.0, 1.0)
    lead: float = 0.0


def plane(normal: tuple[float, ...]) -> tuple[Array, Array]:
    """The x and y of a planar joint: x from the coordinate axis after the normal's largest, y = n x x."""
    n = np.array(normal)
    x = np.roll(np.eye(3)[int(np.argmax(np.abs(n)))], 1)
    x = x - n * (n @ x)
    x /= np.linalg.norm(x)
    return x, np.cross(n, x)


def steps(j: Joint) -> list[Step]:
    """The chain of a joint as the contract words it."""
    if j.kind in ("revolute", "continuous"):
        return [Step("hinge", 0, j.axis)]
    if j.kind == "prismatic":
        return [Step("slide", 0, j.axis)]
    if j.kind == "helical":
        return [Step("screw", 0, j.axis, j.lead)]
    if j.kind == "cylindrical":
        return [Step("slide", 0, j.axis), Step("hinge", 1, j.axis)]
    if j.kind == "universal":
        assert j.axis2 is not None
        return [Step("hinge", 0, j.axis), Step("hinge", 1, j.axis2)]
    if j.kind == "planar":
        x, y = plane(j.axis)
        return [Step("slide", 0, tuple(x)), Step("slide", 1, tuple(y)), Step("hinge", 2, j.axis)]
    return [Step({"spherical": "ball", "free": "free"}[j.kind])]


def depth_first(model: Model) -> list[Joint]:
    """Joints with every subtree contiguous."""
    below: dict[str, list[Joint]] = {}
    for j in model.joints:
        below.setdefault(j.parent, []).append(j)
    order, stack = [], list(reversed(below.get(model.root, [])))
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(below.get(order[-1].child, [])))
    return order


@dataclass(frozen=True)
class Slot:
    """Where a coordinate of the oracle comes from: x = factor * q[at] + offset, or a copy of several."""

    kind: str  # line, angle (the oracle holds cos and sin), ball, free
    q: int  # in the oracle
    v: int
    at: int  # in Drevo
    at_v: int
    factor: float = 1.0
    offset: float = 0.0


def coordinates(model: Model) -> dict[str, tuple[int, int, float, float]]:
    """Joint name -> first q, first v, factor, offset."""
    out, iq, iv = {}, 0, 0
    for j in model.joints:
        out[j.name] = (iq, iv, 1.0, 0.0)
        iq, iv = iq + j.nq, iv + j.nv
    for j in model.joints:
        if j.mimic:
            q, v, _, _ = out[j.mimic.joint]
            out[j.name] = (q, v, j.mimic.multiplier, j.mimic.offset)
    return out


def hat(v: Array) -> Array:
    """v x as a matrix."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def of_quaternion(x: Array) -> Array:
    """Rotation of a unit quaternion (x, y, z, w)."""
    return pin.Quaternion(np.asarray(x, float)).toRotationMatrix()


# -- Pinocchio ----------------------------------------------------------------------------------------------


class Pinocchio:
    """Quantities of Drevo's catalogue by Pinocchio."""

    def __init__(self, model: pin.Model, slots: list[Slot], nv: int) -> None:
        self.model, self.slots, self.nv = model, slots, nv
        self.data = model.createData()
        self.G = np.zeros((model.nv, nv))
        for s in slots:
            for k in range({"ball": 3, "free": 6}.get(s.kind, 1)):
                self.G[s.v + k, s.at_v + k] = s.factor
        self.plain = model.nv == nv  # no substitution
        moved = sum(model.inertias[k].mass for k in range(1, model.njoints))
        self.weight = moved * float(np.linalg.norm(model.gravity.linear))

    def configuration(self, q: Array) -> Array:
        """Drevo's q as Pinocchio's."""
        x = np.zeros(self.model.nq)
        for s in self.slots:
            if s.kind in ("ball", "free"):
                size = 4 if s.kind == "ball" else 7
                x[s.q : s.q + size] = q[s.at : s.at + size]
                continue
            value = s.factor * q[s.at] + s.offset
            if s.kind == "angle":
                x[s.q : s.q + 2] = math.cos(value), math.sin(value)
            else:
                x[s.q] = value
        return x

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        return self.G.T @ pin.rnea(self.model, self.data, self.configuration(q), self.G @ v, self.G @ a)

    def bias(self, q: Array, v: Array) -> Array:
        return self.inverse_dynamics(q, v, np.zeros(self.nv))

    def gravity(self, q: Array) -> Array:
        return self.bias(q, np.zeros(self.nv))

    def mass_matrix(self, q: Array) -> Array:
        M = pin.crba(self.model, self.data, self.configuration(q))
        M = np.triu(M) + np.triu(M, 1).T
        return self.G.T @ M @ self.G

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        if not self.plain:
            return np.linalg.solve(self.mass_matrix(q), tau - self.bias(q, v))
        back = np.linalg.solve(self.G.T, tau)  # a permutation
        return self.G.T @ pin.aba(self.model, self.data, self.configuration(q), self.G @ v, back)

    def inverse_dynamics_derivatives(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        pin.computeRNEADerivatives(self.model, self.data, self.configuration(q), self.G @ v, self.G @ a)
        return self.G.T @ self.data.dtau_dq @ self.G, self.G.T @ self.data.dtau_dv @ self.G

    def forward_dynamics_derivatives(self, q: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
        if not self.plain:
            a = self.forward_dynamics(q, v, tau)
            dq, dv = self.inverse_dynamics_derivatives(q, v, a)
            inverse = np.linalg.inv(self.mass_matrix(q))
            return -inverse @ dq, -inverse @ dv, inverse
        G, x = self.G, self.configuration(q)
        pin.computeABADerivatives(self.model, self.data, x, G @ v, np.linalg.solve(G.T, tau))
        inverse = np.triu(self.data.Minv) + np.triu(self.data.Minv, 1).T
        return G.T @ self.data.ddq_dq @ G, G.T @ self.data.ddq_dv @ G, G.T @ inverse @ G

    def coriolis_matrix(self, q: Array, v: Array) -> Array:
        C = pin.computeCoriolisMatrix(self.model, self.data, self.configuration(q), self.G @ v)
        return self.G.T @ C @ self.G

    def kinetic_energy(self, q: Array, v: Array) -> float:
        return pin.computeKineticEnergy(self.model, self.data, self.configuration(q), self.G @ v)

    def potential_energy(self, q: Array) -> float:
        return pin.computePotentialEnergy(self.model, self.data, self.configuration(q))

    def center_of_mass(self, q: Array) -> Array:
        return pin.centerOfMass(self.model, self.data, self.configuration(q))

    def momentum(self, q: Array, v: Array) -> Array:
        h = pin.computeCentroidalMomentum(self.model, self.data, self.configuration(q), self.G @ v)
        return np.concatenate([h.linear, h.angular])

    def _frame(self, link: str) -> int:
        index = self.model.getFrameId(link, pin.FrameType.BODY)
        assert index < self.model.nframes, link
        return index

    def pose(self, q: Array, link: str) -> Array:
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return self.data.oMf[self._frame(link)].homogeneous

    def poses(self, q: Array) -> dict[str, Array]:
        """Of every link."""
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        frames = [(k, f) for k, f in enumerate(self.model.frames) if f.type == pin.FrameType.BODY]
        return {f.name: self.data.oMf[k].homogeneous for k, f in frames}

    def jacobian(self, q: Array, link: str, frame: str = "local_world_aligned") -> Array:
        k = self._frame(link)
        J = pin.computeFrameJacobian(self.model, self.data, self.configuration(q), k, FRAMES[frame])
        return J.reshape(6, -1) @ self.G  # one column comes back as a vector

    def velocity(self, q: Array, v: Array, link: str, frame: str = "local_world_aligned") -> Array:
        pin.forwardKinematics(self.model, self.data, self.configuration(q), self.G @ v)
        return pin.getFrameVelocity(self.model, self.data, self._frame(link), FRAMES[frame]).vector

    def acceleration(
        self,
        q: Array,
        v: Array,
        a: Array,
        link: str,
        frame: str = "local_world_aligned",
        kind: str = "classical",
    ) -> Array:
        pin.forwardKinematics(self.model, self.data, self.configuration(q), self.G @ v, self.G @ a)
        get = pin.getFrameClassicalAcceleration if kind == "classical" else pin.getFrameAcceleration
        return get(self.model, self.data, self._frame(link), FRAMES[frame]).vector

    def terms(self, q: Array, v: Array, a: Array) -> float:
        """The largest sum of |terms| in a joint force: what a rounding is relative to, however they cancel.

        Every body's own wrench about its centre of mass, projected with the absolute values of its Jacobian.
        """
        model, data = self.model, self.data
        pin.rnea(model, data, self.configuration(q), self.G @ v, self.G @ a)
        pin.computeJointJacobians(model, data, self.configuration(q))
        total = np.zeros(model.nv)
        for k in range(1, model.njoints):
            I = model.inertias[k]
            if I.mass == 0.0 and not I.inertia.any():
                continue
            wrench = I * data.a_gf[k] + data.v[k].cross(I * data.v[k])
            J = pin.getJointJacobian(model, data, k, pin.LOCAL).reshape(6, -1)
            moment = wrench.angular - np.cross(I.lever, wrench.linear)
            linear = J[:3] - hat(I.lever) @ J[3:]
            total += np.abs(linear).T @ np.abs(wrench.linear) + np.abs(J[3:]).T @ np.abs(moment)
        return float(np.max(np.abs(self.G).T @ total, initial=0.0))


_PIN: dict[str, Callable[[Step], pin.JointModel]] = {
    "hinge": lambda s: pin.JointModelRevoluteUnaligned(np.array(s.axis)),
    "slide": lambda s: pin.JointModelPrismaticUnaligned(np.array(s.axis)),
    "screw": lambda s: pin.JointModelHelicalUnaligned(np.array(s.axis), s.lead / (2.0 * math.pi)),
    "ball": lambda s: pin.JointModelSpherical(),
    "free": lambda s: pin.JointModelFreeFlyer(),
}


def _inertia(x: Inertial) -> pin.Inertia:
    return pin.Inertia(x.mass, np.array(x.com), np.array(x.tensor))


def pinocchio_of(model: Model) -> Pinocchio:
    """The robot of a Model, joint by joint."""
    out, at = pin.Model(), coordinates(model)
    out.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    links = {l.name: l for l in model.links}
    where: dict[str, tuple[int, pin.SE3]] = {model.root: (0, pin.SE3.Identity())}
    slots: list[Slot] = []
    for j in depth_first(model):
        parent, place = where[j.parent]
        place = place * pin.SE3(np.array(j.rotation), np.array(j.origin))
        iq, iv, factor, offset = at[j.name]
        for n, s in enumerate(steps(j) if j.kind != "fixed" else []):
            parent = out.addJoint(parent, _PIN[s.kind](s), place, f"{j.name}.{n}")
            place = pin.SE3.Identity()
            kind = s.kind if s.kind in ("ball", "free") else "line"
            slots.append(Slot(kind, out.idx_qs[parent], out.idx_vs[parent], iq + s.at, iv + s.at, factor, offset))
        where[j.child] = (parent, place)
        inertial = links[j.child].inertial
        if inertial is not None and parent > 0:
            out.appendBodyToJoint(parent, _inertia(inertial), place)
    for name, (parent, place) in where.items():
        out.addFrame(pin.Frame(name, parent, 0, place, pin.FrameType.BODY))
    return Pinocchio(out, slots, model.nv)


def pinocchio_of_urdf(path: str | Path, model: Model, base: str = "fixed", mimic: bool = False) -> Pinocchio:
    """Pinocchio's own reading of a URDF file; `model` only says where Drevo keeps each joint's coordinate.

    Mimic tags are read here once more, from the XML; with mimic=True they are Pinocchio's own affair.
    """
    root = [pin.JointModelFreeFlyer()] if base == "floating" else []
    out = pin.buildModelFromUrdf(str(path), *root, mimic=mimic)
    at, tags = coordinates(model), _mimic_tags(path)
    slots = []
    for k in range(1, out.njoints):
        name, short = out.names[k], out.joints[k].shortname()
        factor, offset = 1.0, 0.0
        while name in tags:
            name, m, o = tags[name]
            factor, offset = factor * m, factor * o + offset
        if short.startswith("JointModelMimic"):
            continue
        iq, iv, _, _ = at[name]
        kind = {"JointModelFreeFlyer": "free", "JointModelSpherical": "ball"}.get(short, "line")
        if kind == "line":
            kind = "angle" if out.nqs[k] == 2 else "line"
            assert out.nvs[k] == 1, short
        slots.append(Slot(kind, out.idx_qs[k], out.idx_vs[k], iq, iv, factor, offset))
    return Pinocchio(out, slots, model.nv)


def _mimic_tags(path: str | Path) -> dict[str, tuple[str, float, float]]:
    """Joint -> (joint it follows, multiplier, offset), of joints that move."""
    out = {}
    for j in ElementTree.parse(path).getroot().findall("joint"):
        m = j.find("mimic")
        if m is not None and j.get("type") != "fixed":
            out[str(j.get("name"))] = (
                str(m.get("joint")),
                float(m.get("multiplier", "1")),
                float(m.get("offset", "0")),
            )
    return out


# -- MuJoCo -------------------------------------------------------------------------------------------------


class MuJoCo:
    """The same by MuJoCo: v_mujoco = T(q) v, where T is also what mimic and helical joints substitute."""

    def __init__(self, model: mujoco.MjModel, slots: list[Slot], nv: int) -> None:
        self.model, self.slots, self.nv = model, slots, nv
        self.data = mujoco.MjData(model)

    def _set(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Puts the state in; returns T and dT/dt v."""
        d, T, drift = self.data, np.zeros((self.model.nv, self.nv)), np.zeros(self.model.nv)
        for s in self.slots:
            if s.kind == "line":
                d.qpos[s.q] = s.factor * q[s.at] + s.offset
                T[s.v, s.at_v] += s.factor
                continue
            shift = 3 if s.kind == "free" else 0
            x = q[s.at + shift : s.at + shift + 4]
            d.qpos[s.q + shift : s.q + shift + 4] = x[3], x[0], x[1], x[2]
            w = slice(s.at_v + shift, s.at_v + shift + 3)
            T[s.v + shift : s.v + shift + 3, w] = np.eye(3)
            if shift:
                R, linear = of_quaternion(x), slice(s.at_v, s.at_v + 3)
                d.qpos[s.q : s.q + 3] = q[s.at : s.at + 3]
                T[s.v : s.v + 3, linear] = R
                drift[s.v : s.v + 3] = R @ np.cross(v[w], v[linear])
        d.qvel[:] = T @ v
        return T, drift

    def inverse_dynamics(self, q: Array, v: Array, a: Array) -> Array:
        T, drift = self._set(q, v)
        self.data.qacc[:] = T @ a + drift
        mujoco.mj_inverse(self.model, self.data)
        return T.T @ self.data.qfrc_inverse

    def mass_matrix(self, q: Array) -> Array:
        T, _ = self._set(q, np.zeros(self.nv))
        mujoco.mj_forward(self.model, self.data)
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return T.T @ M @ T

    def forward_dynamics(self, q: Array, v: Array, tau: Array) -> Array:
        if self.model.nv != self.nv:
            bias = self.inverse_dynamics(q, v, np.zeros(self.nv))
            return np.linalg.solve(self.mass_matrix(q), tau - bias)
        T, drift = self._set(q, v)
        self.data.qfrc_applied[:] = np.linalg.solve(T.T, tau)
        mujoco.mj_forward(self.model, self.data)
        return np.linalg.solve(T, self.data.qacc - drift)

    def poses(self, q: Array) -> dict[str, Array]:
        """Of every link but the root."""
        self._set(q, np.zeros(self.nv))
        mujoco.mj_kinematics(self.model, self.data)
        out = {}
        for k in range(1, self.model.nbody):
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = self.data.xmat[k].reshape(3, 3), self.data.xpos[k]
            out[self.model.body(k).name] = X
        return out

    def jacobian(self, q: Array, link: str) -> Array:
        """Local world aligned."""
        T, _ = self._set(q, np.zeros(self.nv))
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        J = np.zeros((6, self.model.nv))
        mujoco.mj_jacBody(self.model, self.data, J[:3], J[3:], self.model.body(link).id)
        return J @ T

    def inverse_dynamics_derivatives(self, q: Array, v: Array, a: Array, moved: Callable) -> tuple[Array, Array]:
        """By central differences of order eight; moved(q, dv) goes along a curve with the tangent dv."""
        return (
            differences(lambda d: self.inverse_dynamics(moved(q, d), v, a), self.nv),
            differences(lambda d: self.inverse_dynamics(q, v + d, a), self.nv),
        )


_ORDER_EIGHT = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def differences(f: Callable[[Array], Array], n: int, h: float = 0.01) -> Array:
    """df/dx at 0 by central differences of order eight, the derivative last."""
    columns = []
    for e in np.eye(n) * h:
        columns.append(sum(c * (f(k * e) - f(-k * e)) for k, c in _ORDER_EIGHT) / h)
    return np.stack(columns, -1)


def _numbers(x: Array | tuple[float, ...]) -> str:
    return " ".join(repr(float(c)) for c in x)


def _quaternion(R: Array) -> str:
    """w x y z, as MuJoCo writes it."""
    x, y, z, w = pin.Quaternion(np.asarray(R, float)).normalized().coeffs()
    return _numbers((w, x, y, z))


def _mj_inertial(x: Inertial) -> ElementTree.Element:
    """Principal axes and moments by LAPACK: MuJoCo's own stop at 1e-12."""
    moments, axes = np.linalg.eigh(np.array(x.tensor))
    if np.linalg.det(axes) < 0.0:
        axes[:, 0] *= -1.0
    given = {"pos": _numbers(x.com), "quat": _quaternion(axes), "mass": repr(x.mass)}
    return ElementTree.Element("inertial", {**given, "diaginertia": _numbers(moments)})


def mujoco_of(model: Model) -> MuJoCo:
    """The robot of a Model as MJCF text; a free joint is three slides and a ball: it may stand anywhere."""
    top = ElementTree.Element("mujoco")
    ElementTree.SubElement(top, "compiler", angle="radian", autolimits="false")
    option = ElementTree.SubElement(top, "option", gravity=_numbers(model.gravity))
    ElementTree.SubElement(option, "flag", contact="disable", constraint="disable")
    where = {model.root: ElementTree.SubElement(top, "worldbody")}
    links = {l.name: l for l in model.links}
    for j in depth_first(model):
        pose = {"pos": _numbers(j.origin), "quat": _quaternion(np.array(j.rotation))}
        where[j.child] = body = ElementTree.SubElement(where[j.parent], "body", {"name": j.child, **pose})
        for n, (kind, _, axis, _) in enumerate(_mj_steps(j)):
            plain = {} if kind == "ball" else {"axis": _numbers(axis)}
            ElementTree.SubElement(body, "joint", {"name": f"{j.name}.{n}", "type": kind, **plain})
        inertial = links[j.child].inertial
        if inertial is not None:
            body.append(_mj_inertial(inertial))
    made = mujoco.MjModel.from_xml_string(ElementTree.tostring(top, "unicode"))
    return MuJoCo(made, _mj_slots(model, made), model.nv)


def _mj_steps(j: Joint) -> list[tuple[str, int, tuple[float, ...], float]]:
    """(type, coordinate, axis, factor) of MuJoCo's joints."""
    if j.kind == "fixed":
        return []
    if j.kind == "free":
        return [("slide", k, tuple(np.eye(3)[k]), 1.0) for k in range(3)] + [("ball", 3, (), 1.0)]
    out = []
    for s in steps(j):
        if s.kind == "screw":
            out.append(("slide", s.at, s.axis, s.lead / (2.0 * math.pi)))
        out.append(({"screw": "hinge"}.get(s.kind, s.kind), s.at, s.axis, 1.0))
    return out


def _mj_slots(model: Model, made: mujoco.MjModel) -> list[Slot]:
    slots, at = [], coordinates(model)
    for j in model.joints:
        iq, iv, factor, offset = at[j.name]
        for n, (_, k, _, scale) in enumerate(_mj_steps(j)):
            here = made.joint(f"{j.name}.{n}").id
            q, v = int(made.jnt_qposadr[here]), int(made.jnt_dofadr[here])
            if j.kind in ("free", "spherical"):
                if n == 0:
                    slots.append(Slot("free" if j.kind == "free" else "ball", q, v, iq, iv))
                continue
            slots.append(Slot("line", q, v, iq + k, iv + k, scale * factor, scale * offset))
    return slots
