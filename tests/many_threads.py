"""Eight threads call every public method of shared robots while the collector runs at every allocation.

`python many_threads.py SECONDS ROBOT ...` prints counts, what was wrong, the memory after each round.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import drevo
from drevo import constraint
from drevo.model.quantities import CATALOGUE

THREADS, ROUND, SAME = 8, 2.0, 1e-8  # a round, s, is how long robots are shared before there are new ones
Call = Callable[[drevo.Robot, Any], Any]
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
)


def numbers_of(found: Any) -> list[np.ndarray]:
    """All numbers of a result, read as a caller reads them."""
    if isinstance(found, dict):
        return [y for x in found.values() for y in numbers_of(x)]
    if isinstance(found, (tuple, list)):
        return [y for x in found for y in numbers_of(x)]
    if isinstance(found, (np.ndarray, float, int)):
        return [np.array(found, float)]
    return [y for name in ASKED if hasattr(found, name) for y in numbers_of(getattr(found, name))]


def calls_of(robot: drevo.Robot, seed: int) -> dict[str, Call]:
    """Every way of calling a method, by name, for a robot and what `robot.under` gives for a foot."""
    rng, link = np.random.default_rng(seed), robot.link_names[-1]
    one: dict[str, Any] = {
        "q": robot.random(rng),
        **{x: rng.normal(size=robot.nv) for x in ("v", "a", "tau", "x")},
    }
    many = {"q": robot.random(rng, 33), **{x: rng.normal(size=(33, robot.nv)) for x in ("v", "a", "tau", "x")}}
    q, v, a = one["q"], one["v"], one["a"]
    ground = "plane" if robot.name == "biped" else None  # of the other robot nothing touches
    calls: dict[str, Call] = {}

    def add(name: str, call: Call) -> None:
        calls[name] = call

    for name, x in CATALOGUE.items():
        more = {"link": link} if "link" in x.options else {}
        for kind, state in (("one", one), ("many", many), ("lists", {k: y.tolist() for k, y in one.items()})):
            given = [state[s] for s in x.state]
            add(f"{name} {kind}", lambda r, h, n=name, g=given, m=more: getattr(r, n)(*g, **m))
        named = {s: one[s] for s in x.state}
        add(f"{name} by name", lambda r, h, n=name, g=named, m=more: getattr(r, n)(**g, **m))
        if x.external:
            for links in (robot.link_names[-1:], robot.link_names[-2:]):
                push = {l: np.arange(6.0) for l in links}
                given = [one[s] for s in x.state]
                add(f"{name} f_ext {len(links)}", lambda r, h, n=name, g=given, w=push: getattr(r, n)(*g, f_ext=w))
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
    add("arrays", lambda r, h: [r.lower, r.upper, r.damping, r.topology.depth_first])
    add("derivative", lambda r, h: r.derivative("mass_matrix", ("q",))(q))
    add("function", lambda r, h: r.function(["mass_matrix", "gravity"])(q))
    add("simulate", lambda r, h: r.simulate(r.neutral(), duration=0.01).q)
    add("step", lambda r, h: r.step_function(dt=1e-3, ground=ground)(r.neutral(), v, a)[:2])
    add("repr", lambda r, h: len(repr(r)))

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
    add("held simulate", lambda r, h: h.simulate(q, duration=0.005).q)
    return calls


def close(x: list[np.ndarray], y: list[np.ndarray]) -> bool:
    """The same numbers, to what two ways of computing them leave."""
    shapes = len(x) == len(y) and all(a.shape == b.shape for a, b in zip(x, y))
    return shapes and all(
        np.allclose(a, b, rtol=SAME, atol=SAME * max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        for a, b in zip(x, y)
    )


def resident() -> float:
    """MB of memory that this process has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def main(seconds: float, names: list[str]) -> int:
    faulthandler.enable()
    models = [drevo.load(name).model for name in names]

    def subjects() -> list[tuple[drevo.Robot, Any]]:
        robots = [drevo.Robot(model) for model in models]
        return [(r, r.under([{"link": r.link_names[-1], "point": (0.1, 0.0, 0.0)}])) for r in robots]

    first = subjects()
    calls = [(k, name, call) for k, (r, _) in enumerate(first) for name, call in calls_of(r, k).items()]
    right = {}
    for k, name, call in list(calls):
        try:
            right[k, name] = numbers_of(call(*first[k]))
        except drevo.DrevoError:  # none of what this robot can be asked
            calls.remove((k, name, call))
    for k, _, call in calls:  # what is compiled at later calls
        call(*first[k])
    gc.set_threshold(1)
    sys.setswitchinterval(1e-5)
    shared, wrong, counts, stop = subjects(), list[str](), [0] * THREADS, threading.Event()

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
        memory.append(resident())
    stop.set()
    for x in threads:
        x.join()
    print(json.dumps({"kinds": len(calls), "calls": sum(counts), "wrong": wrong[:20], "MB": memory}))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]) > 0)
