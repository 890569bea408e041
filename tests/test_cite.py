"""What to cite with a result."""

from __future__ import annotations

import re

import numpy as np
import pytest

import drevo
from drevo.documents.sources import FORMALISM, METHOD, SOURCES
from drevo.simulate.integrators import METHODS


def keys(text: str) -> list[str]:
    assert text == "" or re.fullmatch(r"(@\w+\{\w+,\n(  \w+ = \{[^{}]+\},\n)+\}\n\n?)+", text)
    return re.findall(r"@\w+\{(\w+),", text)


def test_results_rest_on_their_sources() -> None:
    r = drevo.load("puma560")
    d = drevo.write_out(r, "inverse_dynamics", formalism="newton_euler")
    assert keys(drevo.cite(d)) == ["luh1980", "khalil1987"]
    assert keys(drevo.cite(drevo.write_out(drevo.load("three-link"), "mass_matrix", formalism="telegin"))) == [
        "telegin2025"
    ]
    assert keys(drevo.cite(drevo.compile(r, "inverse_dynamics_derivatives"))) == ["khalil1987", "singh2022"]
    assert keys(drevo.cite(drevo.compile(r, "gravity", wrt="q"), d)) == ["zaremba1990", "luh1980", "khalil1987"]
    assert keys(drevo.cite("articulated_body")) == ["featherstone2008"]
    assert drevo.cite().startswith("@software{drevo,\n  title = {Drevo}")


def test_motions_rest_on_their_integrator_and_constraints() -> None:
    r = drevo.load("four-bar")
    q = r.assemble(r.neutral())
    free = drevo.load("puma560").simulate(np.zeros(6), np.zeros(6), duration=0.01, dt=0.01)
    assert keys(drevo.cite(free)) == ["hairer1993", "khalil1987"]
    held = r.simulate(q, np.zeros(r.nv), duration=0.01, dt=0.01, method="gauss4")
    assert keys(drevo.cite(held)) == ["hairer2006", "khalil1987", "udwadia1992"]
    fed = r.simulate(q, np.zeros(r.nv), duration=0.01, dt=0.01, stabilise=(20.0, 100.0))
    assert keys(drevo.cite(fed)) == ["hairer1993", "khalil1987", "udwadia1992", "baumgarte1972"]


def test_the_table_is_whole() -> None:
    used = {name for names in FORMALISM.values() for name in names} | {*METHOD.values()}
    assert used | {"singh", "udwadia", "baumgarte"} == {*SOURCES}
    assert {*METHODS} - {*METHOD} == {"semi_implicit_euler"}
    assert len({*keys("\n".join(s.bibtex for s in SOURCES.values()))}) == len(SOURCES)
    telegin = SOURCES["telegin"].bibtex
    assert "volume = {25}" in telegin and "pages = {33-45}" in telegin and "doi = {10.14529/ctcr250203}" in telegin
    assert "@book{featherstone2008" in repr(drevo.cite("articulated_body"))


@pytest.mark.parametrize("x", [5, "no such", None, drevo.load("puma560")])
def test_what_has_no_source_is_refused(x: object) -> None:
    with pytest.raises(drevo.InputError, match="is nothing that rests on a source: give what write_out"):
        drevo.cite(x)  # type: ignore[arg-type]
