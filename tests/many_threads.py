"""Eight threads call every public method of shared robots while the collector runs at every allocation.

`python many_threads.py SECONDS ROBOT ...` prints counts, what was wrong, the memory after each round.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib.util
import json
import pickle
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import drevo
from drevo import constraint
from drevo.model.quantities import CATALOGUE
from drevo.robot.under import Held

PLACE = tempfile.mkdtemp()
THREADS, ROUND, SAME = 8, 2.0, 1e-8  # a round, s, is how long robots are shared before there are new ones
Call = Callable[[drevo.Robot, Any], Any]
State = dict[str, Any]
Add = Callable[[str, Call], None]
Subject = tuple[drevo.Robot, Any]
Calls = list[tuple[int, str, Call]]
Right = dict[tuple[int, str], list[np.ndarray]]
ARRAYS = ("lower", "upper", "damping", "friction", "stiffness", "reference", "armature", "max_effort")
ASKED = (
    "a",
    "reactions",
    "rank",
    "jacobian",
    "gamma",
    "value",
    "rate",
    "v",
    "impulses",
    "tau",
    "A",
    "B",
    "C",
    "q",
    "mean",
    "max",
)


def numbers_of(found: Any) -> list[np.ndarray]:
    """All numbers of a result, read as a caller reads them."""
    if isinstance(found, dict):
        return [y for x in found.values() for y in numbers_of(x)]
    if isinstance(found, str):
        return [np.frombuffer(found.encode(), np.uint8).astype(float)]
    if isinstance(found, (tuple, list)):
        return [y for x in found for y in numbers_of(x)]
    if isinstance(found, (np.ndarray, float, int)):
        return [np.array(found, float)]
    return [y for name in ASKED if hasattr(found, name) for y in numbers_of(getattr(found, name))]


def calls_of(robot: drevo.Robot, seed: int) -> dict[str, Call]:
    """Every way of calling a method, by name, for a robot and what `robot.under` gives for a foot."""
    rng = np.random.default_rng(seed)
    one: State = {"q": robot.random(rng), **{x: rng.normal(size=robot.nv) for x in ("v", "a", "tau", "x")}}
    many = {"q": robot.random(rng, 33), **{x: rng.normal(size=(33, robot.nv)) for x in ("v", "a", "tau", "x")}}
    calls: dict[str, Call] = {}
    for add_all in (add_quantities, add_methods, add_compiled, add_held):
        add_all(calls.__setitem__, robot, one, many)
    return calls


def add_quantities(add: Add, robot: drevo.Robot, one: State, many: State) -> None:
    link = robot.link_names[-1]
    for name, x in CATALOGUE.items():
        more = {"link": link} if "link" in x.options else {}
        first = [more.pop("link")] if name == "operational_space" else []  # where the link stands first
        for kind, state in (("one", one), ("many", many), ("lists", {k: y.tolist() for k, y in one.items()})):
            given = first + [state[s] for s in x.state]
            add(f"{name} {kind}", lambda r, h, n=name, g=given, m=more: getattr(r, n)(*g, **m))
        named = {s: one[s] for s in x.state} | ({"link": link} if first else {})
        add(f"{name} by name", lambda r, h, n=name, g=named, m=more: getattr(r, n)(**g, **m))
        if x.external:
            for links in (robot.link_names[-1:], robot.link_names[-2:]):
                push = {l: np.arange(6.0) for l in links}
                given = [one[s] for s in x.state]
                add(f"{name} f_ext {len(links)}", lambda r, h, n=name, g=given, w=push: getattr(r, n)(*g, f_ext=w))


def add_methods(add: Add, robot: drevo.Robot, one: State, many: State) -> None:
    q, v, a, link = one["q"], one["v"], one["a"], robot.link_names[-1]
    for name in ("integrate", "integrate_derivatives"):
        add(name, lambda r, h, n=name: getattr(r, n)(q, v))
    for name in ("difference", "difference_derivatives"):
        add(name, lambda r, h, n=name: getattr(r, n)(q, many["q"][0]))
    add("into out", lambda r, h: r.inverse_dynamics(q, v, a, out=np.empty(r.nv)))
    add(
        "into outs",
        lambda r, h: r.forward_dynamics_derivatives(q, v, a, out=[np.empty((r.nv,) * 2) for _ in "abc"]),
    )
    add("neutral", lambda r, h: r.neutral())
    add("random", lambda r, h: [r.random(np.random.default_rng(3)), r.random(np.random.default_rng(3), 5)])
    add("state", lambda r, h: list(r.names_of(q).values()))
    add("arrays", lambda r, h: [*(getattr(r, x) for x in ARRAYS), r.max_velocity, r.topology.depth_first])
    add("names", lambda r, h: [r.name, *r.joint_names, *r.link_names, *r.moving_links, *r.notes, *r.keyframes])
    add("numbers", lambda r, h: [r.nq, r.nv, r.total_mass, r.inertial_parameters, r.initial])
    add("states by name", lambda r, h: [r.q_of({}), r.v_of({})])
    add("by other names", lambda r, h: [r.rnea(q, v, a), r.aba(q, v, a), r.crba(q)])
    add("texts", lambda r, h: [r.to_json(), r.to_toml(), r.to_urdf()])
    add(
        "copies",
        lambda r, h: [copied(r).bias(q, v), copied(h).dynamics(q, v, a), copied(drevo.compile(r, "bias"))(q, v)],
    )
    add("files", saved)
    add("pages", lambda r, h: [r.draw(q).svg, r.view(tempfile.mkdtemp(dir=PLACE) + "/page.html") is None])
    add("rerooted", lambda r, h: moved_base(r.rerooted(link), q, v, a))
    add("rerooted with its root", lambda r, h: r.rerooted(r.model.links[0].name).mass_matrix(q))
    add("on a moving base", lambda r, h: carried(r.with_base_motion(rising), q, v, a))
    add("observed", lambda r, h: [r.pose(q, link, relative_to=r.link_names[-2]),
                                  r.jacobian(q, link, relative_to=r.link_names[-2])])  # fmt: skip
    add("workspace", lambda r, h: r.workspace(link, 20).points)
    add("inverse_kinematics", lambda r, h: r.inverse_kinematics(link, r.pose(q, link), q0=q).q)
    add("closed_form", lambda r, h: closed(r, link, q))
    add("distance", lambda r, h: [r.distance(q).distance, r.distance_jacobian(q)])
    for module in ("mujoco", "pinocchio"):
        if importlib.util.find_spec(module):
            add(module, lambda r, h, m=module: getattr(r, f"to_{m}")() is None)
    add("derivative", lambda r, h: drevo.compile(r, "mass_matrix", wrt=("q",))(q))
    add("payload", lambda r, h: r.with_payload(link, 1.0, (0.1, 0.0, 0.0)).gravity(q))
    add("without passive forces", lambda r, h: r.without_passive().bias(q, v))
    add("a derivative by its method", lambda r, h: r.derivative("gravity", ("q",))(q))
    add("function", lambda r, h: drevo.compile(r, ["mass_matrix", "gravity"])(q))
    add("simulate", lambda r, h: r.simulate(r.neutral(), duration=0.01).q)
    for law in (controlled, integrating):
        add(
            f"simulate {law.__name__}", lambda r, h, law=law: r.simulate(q, v, law(r, q), duration=0.01, dt=1e-3).q
        )
    add("laws", lambda r, h: [controlled(r, q)(0.0, q, v), drevo.control.gravity_compensation(r, 0.2)(0.0, q, v)])
    add("laws of a link", lambda r, h: [f(0.0, q, v) for f in at_the_hand(r)])
    if importlib.util.find_spec("qpsolvers"):
        add("solve_id", lambda r, h: drevo.tasks.solve_id(r, q, v, [drevo.tasks.PostureTask()], limits=False)[:2])
    add("drives", lambda r, h: drives_of(r).linearise(q, v, [0.1], [1.0]).A)
    add("closed loop", lambda r, h: drevo.control.closed_loop(r, controlled(r, q), q, v).A)
    add("repr", lambda r, h: len(repr(r)))


def add_compiled(add: Add, robot: drevo.Robot, one: State, many: State) -> None:
    v, a, link = one["v"], one["a"], robot.link_names[-1]
    ground = "plane" if robot.name == "biped" else None  # of the other robot nothing touches
    add("step", lambda r, h: drevo.compile(r, "step", dt=1e-3, ground=ground)(r.neutral(), v, a)[:2])
    for name, x in CATALOGUE.items():
        options: dict[str, Any] = {"link": link} if "link" in x.options else {}
        for how in ({}, {"dtype": "float32"}, {"layout": "batch_last"}, {"product": "vjp"}):
            add(
                f"compile {name} {how}",
                lambda r, h, n=name, o={**options, **how}: called(r, drevo.compile(r, n, **o)),
            )
    for law in ("soft", "coulomb"):
        for product in ("", "jacobian"):
            how = {"dt": 1e-3, "ground": ground, "law": law, "product": product or ()}
            add(f"compile step {law} {product}", lambda r, h, o=how: called(r, drevo.compile(r, "step", **o)))
    add("stream", lambda r, h: drevo.stream(r, "gravity", samples=2000))
    add("shooting", lambda r, h: drevo.control.optimise(r, squares, one["q"], v, 5, 0.01, iterations=2).tau)
    if ground is None and importlib.util.find_spec("gymnasium"):
        add("environment", lambda r, h: played(drevo.envs.make("InvertedPendulum-v5", num_envs=3)))


def add_held(add: Add, robot: drevo.Robot, one: State, many: State) -> None:
    q, v, a, link = one["q"], one["v"], one["a"], robot.link_names[-1]
    feet = [[{"link": link, "point": (0.1, 0.01 * k, 0.0)}] for k in range(6)]
    plane = [constraint.point_on_plane(link, (0.1, 0.0, 0.0), (0.0, 0.0, 1.0))]
    for k, foot in enumerate(feet):
        same = {"contacts": foot}
        add(f"dynamics {k}", lambda r, h, s=same: r.constrained_dynamics(q, v, a, **s))
        add(f"impact {k}", lambda r, h, s=same: r.impact(q, v, **s))
        add(f"linearise {k}", lambda r, h, s=same: r.linearise(q, v, a, **s))
        add(f"copies {k}", lambda r, h, s=foot: r.constrained_dynamics(q, v, a, contacts=[dict(s[0])]))
        add(f"efforts {k}", lambda r, h, s=same: r.constrained_inverse_dynamics(
            q, v, r.constrained_dynamics(q, v, a, **s).a, **s))  # fmt: skip
        add(f"moved {k}", lambda r, h, s=foot: h.moved([s[0]["point"]]).dynamics(q, v, a))
        add(f"moved linearise {k}", lambda r, h, s=foot: h.moved(np.array([s[0]["point"]])).linearise(q, v, a))
    add("plane", lambda r, h: r.constrained_dynamics(q, v, a, constraints=plane))
    add(
        "both",
        lambda r, h: r.constrained_dynamics(q, v, a, contacts=feet[0], constraints=plane, stabilise=(20.0, 100.0)),
    )
    add("dynamics many", lambda r, h: r.constrained_dynamics(many["q"], many["v"], many["a"], contacts=feet[0]))
    add("dynamics f_ext", lambda r, h: r.constrained_dynamics(q, v, a, contacts=feet[0], f_ext={link: np.ones(6)}))
    add("linearise", lambda r, h: r.linearise(q, v, a))
    add("held dynamics", lambda r, h: h.dynamics(q, v, a))
    add("held impact", lambda r, h: h.impact(q, v, 0.5))
    add("held linearise", lambda r, h: h.linearise(q, v, a))
    add("held efforts", lambda r, h: h.inverse_dynamics(q, v, h.dynamics(q, v, a).a))
    add("held states", lambda r, h: [h.hold(q, v), h.assemble(q)])
    add("held names", lambda r, h: [h.robot.name, *h.rows, str(h.constraints)])
    add("held simulate", lambda r, h: h.simulate(q, duration=0.005).q)


def moved_base(r: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[np.ndarray]:
    """The accelerations of a rerooted robot at a state carried over."""
    q, v = r.map(q, v)
    return [q, v, r.forward_dynamics(q, v, tau)]


def rising(t: Any) -> list[Any]:
    return [0.1 * drevo.sin(t), 0.0, 0.2 * t * t]


def carried(moved: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
    """Quantities of a robot whose base moves; of a floating one q begins after the base."""
    q, v, a = q[len(q) - moved.nq :], v[len(v) - moved.nv :], a[len(a) - moved.nv :]
    return [moved.inverse_dynamics(q, v, a, 0.3), moved.clocked.bias(*moved.state(0.3, q, v)),
            moved.simulate(q, v, duration=0.003).q]  # fmt: skip


def closed(r: Any, link: str, q: np.ndarray) -> Any:
    """All configurations of a pose and the nearest one, or why there is no closed form."""
    try:
        return [np.nan_to_num(r.closed_form(link)(r.pose(q, link)), nan=-9.0),
                r.inverse_kinematics_path(link, r.pose(q, link)[None], q)]  # fmt: skip
    except drevo.DrevoError as error:
        return str(error)


def controlled(r: drevo.Robot, q: np.ndarray) -> Any:
    return drevo.control.computed_torque(r, q, 4.0, 3.0)


def drives_of(r: drevo.Robot) -> Any:
    """The robot with a motor on its first joint of one freedom."""
    name = next(j.name for j in r.model.moving_joints if j.nv == 1)
    return drevo.control.DrivenRobot(r, {name: drevo.control.ElectricDrive(0.8, 2e-3, 0.06, 50.0)})


def at_the_hand(r: drevo.Robot) -> Any:
    """Laws in task space; robots of few joints have a regularisation."""
    hand, some = r.link_names[-1], {"regularisation": 0.3}
    yield drevo.control.operational_space(r, hand, 4.0, 3.0, **some)
    yield drevo.control.impedance(r, hand, 4.0, 3.0, **some)
    yield drevo.control.admittance(r, hand, 4.0, 3.0, 2.0, **some)
    yield drevo.control.hybrid(r, hand, 4.0, 3.0, force_axes="z", force=1.0, **some)


def integrating(r: drevo.Robot, q: np.ndarray) -> Any:
    return drevo.control.pid(r, q, 4.0, 1.0, 0.5)


def called(r: drevo.Robot, f: Any) -> Any:
    """The result of a Function at rest and for numbers that stay the same."""
    given = [r.neutral() if name == "q" else np.full(shape, 0.1) for name, shape in f.inputs]
    return f(*(x.reshape(-1, 1) if f.layout == "batch_last" else x for x in given))


def squares(pose: Any, q: Any, v: Any, tau: Any, t: Any) -> Any:
    return sum(x * x for x in (*q, *v, *tau))


def played(env: Any) -> list[np.ndarray]:
    """What is seen of a few steps."""
    return [env.reset(seed=1)[0], *(env.step(np.full((3, 1), 0.1))[0] for _ in range(3))]


def copied(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))  # noqa: S301


def saved(r: drevo.Robot, h: Any) -> str:
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        return r.save(f"{folder}/robot.json")


def close(x: list[np.ndarray], y: list[np.ndarray]) -> bool:
    """The same numbers, to what two ways of computing them leave."""
    shapes = len(x) == len(y) and all(a.shape == b.shape for a, b in zip(x, y))
    return shapes and all(
        np.allclose(a, b, rtol=SAME, atol=SAME * max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        for a, b in zip(x, y)
    )


def noting(kind: type, names: set[str]) -> None:
    """From now on names get those of all attributes that are asked for."""
    usual = kind.__getattribute__

    def get(self: object, name: str) -> Any:
        names.add(name)
        return usual(self, name)

    kind.__getattribute__ = get  # type: ignore[assignment]


class Allocated(ctypes.Structure):
    """What mallinfo2 of glibc tells, in bytes: what its arenas hold, what of it is in use and what is free."""

    _fields_ = [(x, ctypes.c_size_t) for x in ("arena", *"abc", "mapped", *"de", "used", "free", "trimmed")]


def in_use() -> float:
    """MB of memory that this process has, less what the allocator keeps free between pieces in use."""
    with open("/proc/self/statm", encoding="ascii") as file:
        resident = int(file.read().split()[1]) * 4096
    told = ctypes.CDLL(None).mallinfo2
    told.restype = Allocated
    return (resident - int(told().free)) / 1e6


def expected(subjects: Callable[[], list[Subject]]) -> tuple[Calls, Right, list[str]]:
    """Every call with what it gives alone; what is wrong already: public methods that none of them calls."""
    touched = set[str]()
    for kind in (drevo.Robot, Held):
        noting(kind, touched)
    first, right = subjects(), Right()
    calls = [(k, name, call) for k, (r, _) in enumerate(first) for name, call in calls_of(r, k).items()]
    for k, name, call in list(calls):
        try:
            right[k, name] = numbers_of(call(*first[k]))
        except drevo.DrevoError:  # none of what this robot can be asked
            calls.remove((k, name, call))
    for k, _, call in calls:  # what is compiled at later calls
        call(*first[k])
    public = {x for kind in (drevo.Robot, Held) for x in dir(kind) if not x.startswith("_")}
    for kind in (drevo.Robot, Held):
        del kind.__getattribute__
    return calls, right, [f"{x} is never called" for x in sorted(public - touched)]


def main(seconds: float, names: list[str]) -> int:
    faulthandler.enable()
    models = [drevo.load(name).model for name in names]

    def subjects() -> list[Subject]:
        robots = [drevo.Robot(model) for model in models]
        return [(r, r.under([{"link": r.link_names[-1], "point": (0.1, 0.0, 0.0)}])) for r in robots]

    calls, right, wrong = expected(subjects)
    gc.set_threshold(1)
    sys.setswitchinterval(1e-5)
    shared, counts, stop = subjects(), [0] * THREADS, threading.Event()

    def work(thread: int) -> None:
        rng, kept = random.Random(thread), list[Any]()
        while not stop.is_set():
            k, name, call = rng.choice(calls)
            try:
                kept.append(call(*shared[k]))
                if not close(numbers_of(kept[-1]), right[k, name]):
                    wrong.append(f"{names[k]}: {name}: other numbers")
            except Exception as error:
                wrong.append(f"{names[k]}: {name}: {error!r}")
            counts[thread] += 1
            del kept[:-20]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for x in threads:
        x.start()
    memory = list[float]()
    for _ in range(round(seconds / ROUND)):
        time.sleep(ROUND)
        shared[:] = subjects()
        memory.append(in_use())
    stop.set()
    for x in threads:
        x.join()
    shutil.rmtree(PLACE)
    print(json.dumps({"kinds": len(calls), "calls": sum(counts), "wrong": wrong[:20], "MB": memory}))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]) > 0)
