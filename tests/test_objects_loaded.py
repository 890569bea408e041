"""Objects in memory: code that nobody can write, memory that is given back."""

from __future__ import annotations

import sys

import pytest

import drevo
from drevo.codegen.store import native
from drevo.codegen.store.build import Spec, build
from drevo.compiler.recipe import Recipe

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/maps tells of memory")


def entry() -> bytes:
    program = Recipe(("mass_matrix", "bias")).program(drevo.load("puma560").model)
    return build(program, Spec())[1].entry


def maps() -> list[str]:
    with open("/proc/self/maps", encoding="ascii") as file:
        return file.readlines()


def test_code_cannot_be_written() -> None:
    loaded = native.Loaded(entry())
    at = loaded.address("entry")
    spans = [line.split()[:2] for line in maps()]
    (mode,) = [m for span, m in spans if int(span.split("-")[0], 16) <= at < int(span.split("-")[1], 16)]
    assert mode.startswith("r-x")
    assert loaded.address("table", data=True) and not loaded.address("nothing of this name")


def test_memory_is_given_back() -> None:
    obj = entry()
    native.Loaded(obj)
    before = len(maps())
    for _ in range(50):
        native.Loaded(obj)
    assert len(maps()) <= before + 10
