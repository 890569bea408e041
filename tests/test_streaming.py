"""Streams of samples: the generator against its definition, sums against the plain call, threads, refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drevo
from drevo import streaming
from drevo.codegen.call import stream as runtime_stream
from drevo.errors import InputError, NumericsError

ARM = drevo.load("puma560")
FREE = drevo.load("biped", base="floating")
EXAMPLE = Path(__file__).parent.parent / "examples" / "streaming.py"
GOLDEN = 0x9E3779B97F4A7C15


def splitmix64(state: int) -> tuple[int, int]:
    """The next state and number, in whole numbers, as in the appendix of the paper."""
    state = (state + GOLDEN) % 2**64
    z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
    return state, z ^ z >> 31


def test_the_generator_gives_the_published_numbers() -> None:
    """The test vector that implementations of SplitMix64 share, and the definition far out in the stream."""
    first = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert runtime_stream.splitmix(1234567, np.arange(5, dtype=np.uint64)).tolist() == first
    far = 2**62 + 3
    _, want = splitmix64((99 + far * GOLDEN) % 2**64)
    assert runtime_stream.splitmix(99, np.array([far], np.uint64)).tolist() == [want]


def test_inputs_are_what_the_generator_says() -> None:
    given: Any = {"v": 2.0, "a": (-1.0, np.arange(6) + 1.0)}
    found = streaming.inputs(ARM, "inverse_dynamics", 5, seed=7, first=3, ranges=given)
    state = (7 + 3 * 18 * GOLDEN) % 2**64
    for k in range(5):
        u = np.empty(18)
        for i in range(18):
            state, z = splitmix64(state)
            u[i] = (z >> 12) / 2**52
        assert (found["v"][k] == u[6:12] * 4.0 - 2.0).all()
        assert (found["a"][k] == u[12:] * (np.arange(6) + 2.0) - 1.0).all()


@pytest.mark.parametrize("samples", [1, 7, 8, 63, 64, 65, 1000])
def test_sums_are_those_of_the_plain_call(samples: int) -> None:
    x = streaming.inputs(ARM, "inverse_dynamics", samples, seed=1)
    tau = ARM.inverse_dynamics(*x.values())
    s = drevo.stream(ARM, "inverse_dynamics", samples, seed=1)
    assert isinstance(s, streaming.Statistics) and s.samples == samples
    assert (s.min == tau.min(axis=0)).all() and (s.max == tau.max(axis=0)).all()  # the kernel saw the same bits
    scale = np.abs(tau).max(axis=0)
    assert (np.abs(s.sum - tau.sum(axis=0)) <= 1e-13 * samples * scale).all()
    assert (np.abs(s.sum_of_squares - (tau**2).sum(axis=0)) <= 1e-13 * samples * scale**2).all()
    assert (np.abs(s.mean - tau.mean(axis=0)) <= 1e-13 * scale).all()
    assert (np.abs(s.std - tau.std(axis=0)) <= 1e-7 * scale).all()  # of the root of a difference


def test_free_bodies_matrices_lists_and_links() -> None:
    names = ["mass_matrix", "bias"]
    x = streaming.inputs(FREE, names, 300)
    q = x["q"][:, 3:7]
    assert np.allclose((q**2).sum(axis=1), 1.0, rtol=0, atol=1e-14) and abs(q.mean()) < 0.1
    found = drevo.stream(FREE, names, 300)
    assert isinstance(found, dict)
    for (name, s), y in zip(found.items(), (FREE.mass_matrix(x["q"]), FREE.bias(x["q"], x["v"]))):
        assert np.allclose(s.max, y.max(axis=0), rtol=0, atol=1e-12 * np.abs(y).max()), name
        assert np.allclose(s.mean, y.mean(axis=0), rtol=0, atol=1e-12 * np.abs(y).max()), name
    pose: Any = drevo.stream(ARM, "pose", 100, link="link3")
    y = ARM.pose(streaming.inputs(ARM, "pose", 100, link="link3")["q"], "link3")
    assert (pose.max == y.max(axis=0)).all() and pose.sum.shape == (4, 4)


def test_parameters_stay_at_their_values_or_have_ranges() -> None:
    names = ["link3.mass", "link4.mass"]
    fixed: Any = drevo.stream(ARM, "inverse_dynamics", 500)
    same: Any = drevo.stream(
        ARM, "inverse_dynamics", 500, parameters=names, ranges={"parameters": ([4.8, 0.82], [4.8, 0.82])}
    )
    wide: Any = drevo.stream(ARM, "inverse_dynamics", 500, parameters=names, ranges={"parameters": (0.0, 10.0)})
    assert fixed.std.shape == same.std.shape and wide.std[1] > same.std[1]
    x = streaming.inputs(ARM, "inverse_dynamics", 5, parameters=names)
    assert (x["parameters"] == x["parameters"][0]).all()


def test_threads_and_parts_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_stream, "BLOCK_SAMPLES", 1000)
    runs: list[Any] = [drevo.stream(ARM, "inverse_dynamics", 20_500, seed=-3, threads=n) for n in (1, 2, 5)]
    for s in runs[1:]:
        assert all(
            getattr(s, n).tobytes() == getattr(runs[0], n).tobytes()
            for n in ("sum", "sum_of_squares", "min", "max")
        )
    halves: list[Any] = [
        drevo.stream(ARM, "inverse_dynamics", n, seed=-3, first=k) for k, n in ((0, 9000), (9000, 11_500))
    ]
    assert (np.minimum(halves[0].min, halves[1].min) == runs[0].min).all()
    assert np.allclose(halves[0].sum + halves[1].sum, runs[0].sum, rtol=0, atol=1e-13 * 20_500 * runs[0].max.max())


def test_a_sample_that_fails_is_named() -> None:
    with pytest.raises(NumericsError, match=r"in row \d+ is nan.*row 0 is sample 0 of the stream with seed 0"):
        drevo.stream(ARM, "inverse_dynamics", 5000, ranges={"q": 2.0**41})
    with pytest.raises(NumericsError, match=r"singular there.*row 0 is sample 8192"):
        # the wrist stands straight in every sample; the first block is not reached
        drevo.stream(ARM, "operational_inertia", 10, first=8192, link="link6", ranges={"q": (0.0, 0.0)})


REFUSED = {
    "samples is 0; it must be": {"samples": 0},
    "samples is 1.5; it must be a whole number from 1": {"samples": 1.5},
    "threads is 0; it must be": {"threads": 0},
    "first is -1; it must be": {"first": -1},
    "seed is .x.; it must be": {"seed": "x"},
    "takes no 'dtype'": {"dtype": "float32"},
    "takes no 'tau', which ranges name": {"ranges": {"tau": 1.0}},
    "range of q must be finite": {"ranges": {"q": (1.0, -1.0)}},
    "range of v must be finite": {"ranges": {"v": np.inf}},
    "range of a must be a number or": {"ranges": {"a": ("x", 2)}},
    "each a number or 6 of them": {"ranges": {"a": (np.zeros(5), 1.0)}},
}


@pytest.mark.parametrize("words", REFUSED)
def test_refusals(words: str) -> None:
    given: Any = {"samples": 10, **REFUSED[words]}
    with pytest.raises(InputError, match=words):
        drevo.stream(ARM, "inverse_dynamics", **given)


def test_the_example_runs() -> None:
    words = [sys.executable, str(EXAMPLE), "puma560", "--samples", "1e5", "--threads", "2"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "1e+05 times inverse_dynamics" in done.stdout and "  std [" in done.stdout
