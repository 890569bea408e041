"""Compiled code is found by one key: edited sources, or an upgrade, are never served code of the old ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import drevo
from drevo.codegen.call import stream
from drevo.codegen.store import cache, key
from drevo.codegen.store.build import Spec
from drevo.contact.step import StepRequest
from drevo.ground import Uneven
from drevo.io import packages
from drevo.model import contact, description

PACKAGE = Path(drevo.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    where = tmp_path / "src" / "drevo"
    shutil.copytree(PACKAGE, where, ignore=shutil.ignore_patterns("__pycache__"))
    return where


def test_every_module_is_in_the_key(copy: Path) -> None:
    def state() -> list[Any]:
        return sorted(key.files(str(copy)))

    modules = sorted(copy.rglob("*.py"))
    assert [x[0] for x in state()] == sorted(p.relative_to(copy).as_posix() for p in modules)
    was = state()
    for path in modules:
        seen = path.stat()
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))  # an edit that leaves the size
        later = state()
        assert later != was, path
        path.write_bytes(path.read_bytes() + b"\n")  # and one that leaves the time
        os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1))
        was = state()
        assert was != later, path
    (copy / "newcomer.py").touch()
    assert len(state()) == len(was) + 1
    (copy / "__pycache__").mkdir()
    (copy / "__pycache__" / "x.pyc").touch()
    assert len(state()) == len(was) + 1


SCRIPT = """
import numpy as np, drevo
r, c = drevo.load("two-arm-planar"), drevo.constraint
x = c.point_on_plane(r.link_names[-1], (0.1, 0, 0), normal=(0, 1, 0))
f = r.constrained_dynamics(np.full(r.nq, 0.3), np.full(r.nv, 0.1), np.zeros(r.nv), constraints=[x])
print(float(f.gamma[0]))
"""
EDIT = """
_unedited = all_rows
def all_rows(constraints, k, t):
    rows = _unedited(constraints, k, t)
    return rows._replace(bias=[x + 1000.0 for x in rows.bias])
"""


def test_an_edit_serves_fresh_code(copy: Path, tmp_path: Path) -> None:
    env = dict(os.environ, PYTHONPATH=str(copy.parent), DREVO_CACHE_DIR=str(tmp_path / "cache"))

    def gamma() -> float:
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=60)
        return float(done.stdout)

    def entries() -> int:
        return len(list((tmp_path / "cache").rglob("*.bin")))

    before, made = gamma(), entries()
    assert made and gamma() == before and entries() == made
    with open(copy / "constraint" / "collection.py", "a", encoding="utf-8") as file:
        file.write(EDIT)
    assert gamma() == pytest.approx(before + 1000.0) and entries() > made


def test_an_edit_after_the_import_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = key.sources.__wrapped__
    assert fresh() == fresh()
    monkeypatch.setattr(packages, "PROCESS_START", 0.0)
    assert fresh() != fresh()


def test_everything_compiled_goes_by_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def noted(do: Any) -> Any:
        return lambda name, *rest: asked.append(name) or do(name, *rest)

    monkeypatch.setenv("DREVO_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(key, "sources", lambda: "THESE SOURCES")
    monkeypatch.setattr(cache, "read_entry", noted(cache.read_entry))
    monkeypatch.setattr(cache, "write_entry", noted(cache.write_entry))
    stream._loop.cache_clear()
    r = drevo.load("two-arm-planar")
    q = np.full(r.nq, 0.3)
    touch = {"link": r.link_names[-1], "point": (0.0, 0.0, 0.0), "rows": 3}
    chain = drevo.robots.rod_chain(n=70)
    z = np.zeros(chain.nq)
    ways = {
        "a quantity": lambda: r.mass_matrix(q),
        "a derivative": lambda: drevo.compile(r, "gravity", wrt="q"),
        "a motion": lambda: r.simulate(q, q, duration=0.01, dt=0.01),
        "contacts": lambda: r.constrained_dynamics(q, q, q, contacts=[touch]),
        "a loop over bodies": lambda: chain.bias(z, z),
        "a stream": lambda: drevo.stream(r, "gravity", samples=1000),
    }
    for name, way in ways.items():
        asked.clear()
        way()
        assert len(asked) > 1 and all("THESE SOURCES" in x for x in asked), name


def sample(hint: Any) -> Any:
    """A value of a type."""
    options = [x for x in get_args(hint) if x not in (NoneType, Uneven)]
    if get_origin(hint) is UnionType:
        return sample(options[0])
    if get_origin(hint) is tuple:
        return tuple(sample(x) for x in options if x is not Ellipsis)
    if is_dataclass(hint):
        return hint(**{name: sample(x) for name, x in get_type_hints(hint).items()})
    plain = {float: 0.1, int: 3, str: "x", bool: False}
    return "float32" if hint is str and options else plain[hint]


def changed(x: Any, hint: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every value that differs in one place, with the field that it is of: the innermost one."""
    options = get_args(hint)
    if get_origin(hint) is UnionType:
        yield from changed(x, next(y for y in options if y not in (NoneType, Uneven)), name)
        yield name, None
    elif get_origin(hint) is tuple:
        for k, y in enumerate(x):
            yield from ((n, (*x[:k], z, *x[k + 1 :])) for n, z in changed(y, options[k], name))
        yield name, (*x, *x)
        yield name, ()
    elif is_dataclass(x):
        for at, of in get_type_hints(type(x)).items():
            for n, y in changed(getattr(x, at), of, f"{type(x).__name__}.{at}"):
                yield n, replace(x, **{at: y})
    else:
        yield name, {float: lambda: np.nextafter(x, 1.0).item(), bool: lambda: not x}.get(type(x), lambda: x + x)()


def test_every_field_of_the_model_is_in_the_key_or_named() -> None:
    model = sample(description.Model)
    same, seen = key.request(model, "mass_matrix"), {key.request(model, "bias")}
    names = set()
    for name, other in changed(model, description.Model, ""):
        names.add(name)
        text = key.request(other, "mass_matrix")
        assert (text == same) == (name in key.UNKEYED), name
        assert text == same or text not in seen, name
        seen.add(text)
    kinds = [x for room in (description, contact) for x in vars(room).values() if isinstance(x, type)]
    assert names == {f"{x.__name__}.{f.name}" for x in kinds if is_dataclass(x) for f in fields(x)
                     if not is_dataclass(get_type_hints(x)[f.name])}  # fmt: skip
    assert set(key.UNKEYED) <= names and all(key.UNKEYED.values())


def test_every_option_is_in_the_key() -> None:
    step: dict[str, Any] = {
        "law": "coulomb", "method": "rk4", "dt": 2e-3, "ground": None, "repeat": 2, "friction": 0.5,
        "restitution": 0.1, "touching": ("a",), "last": True, "product": ("vjp",), "parameters": ("b",),
        "numbers": True, "controls": True, "sensors": ("c",),
    }  # fmt: skip
    spec: dict[str, Any] = {
        "dtype": "float32", "layout": "batch_last", "packed": True, "parameters": True, "check": False,
        "single": False,
    }  # fmt: skip
    for whole, others in ((StepRequest("soft", "euler", 1e-3, "plane"), step), (Spec(), spec)):
        assert set(others) == {f.name for f in fields(whole)}
        texts = {key.key_text(replace(whole, **{name: x})) for name, x in others.items()}
        assert len({*texts, key.key_text(whole)}) == len(others) + 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.0, -0.0), (1, 1.0), (1, True), ("1", 1), (None, "None"), ((1, 2), (1, (2,))), ((), None), ([1], (1,)),
        (np.ones(2000), np.r_[np.ones(1999), np.nextafter(1.0, 2.0)]), (np.zeros(4), np.zeros((2, 2))),
        (np.zeros(2), -np.zeros(2)), (np.zeros(2), np.zeros(2, "f4")), ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        (np.float32(0.5), np.float64(0.5)), (("a, b",), ("a", "b")), ("a'", 'a"'), ({"1": 1}, {1: 1}),
    ],
)  # fmt: skip
def test_values_that_differ_have_texts_that_differ(one: Any, other: Any) -> None:
    with np.printoptions(precision=3, threshold=5):
        assert key.key_text(one) != key.key_text(other)
        assert key.key_text(one) == key.key_text(one)


def test_a_function_is_no_part_of_a_key() -> None:
    for x in (lambda: 0, print, object(), np.array([print], object)):
        with pytest.raises(TypeError, match="no part of a key"):
            key.key_text(("step", {"by": x}))
