"""Laws that hold for every vectorised environment of goals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from drevo.errors import InputError


def state_comes_back_and_pickles(env: Any, level: float) -> None:
    """A state that is set again, and a pickled copy, give the same observation."""
    env.reset(seed=2)
    kept, action = env.state, np.full(env.action_space.shape, level, np.float32)
    after = _observed(env, action)
    copy = pickle.loads(pickle.dumps(env))  # noqa: S301
    for one in (env, copy):
        one.set_state(kept)
        assert np.array_equal(_observed(one, action), after)
    with pytest.raises(InputError, match="what env\\.state gave"):
        env.set_state({"q": kept["q"]})
    assert env.render(1).shape == (480, 640, 3)


def _observed(env: Any, action: np.ndarray) -> np.ndarray:
    seen = env.step(action)[0]
    return seen["observation"] if isinstance(seen, dict) else seen


def seeds_give_starts(env: Any, column: int) -> np.ndarray:
    """A seed gives the same starts again, each of the environments another one in a column of what it observes."""
    first, _ = env.reset(seed=4)
    again, _ = env.reset(seed=4)
    assert np.array_equal(first, again) and len({*first[:, column]}) == env.num_envs
    return np.asarray(first)
