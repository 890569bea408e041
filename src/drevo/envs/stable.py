"""Vector environments in the form that Stable-Baselines3 takes, so that its algorithms run as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..io.given import Array
from ..io.packages import package
from .vector import StepEnv


def stable_baselines(envs: StepEnv) -> Any:
    """A stable_baselines3.common.vec_env.VecEnv that steps these environments, made with autoreset="SameStep".

    Returns and lengths of episodes stand in infos["episode"], as its Monitor puts them there. InputError for
    another autoreset. Needs the package stable-baselines3.
    """
    base = package("stable_baselines3.common.vec_env", "stable_baselines", "stable-baselines3").VecEnv
    if not isinstance(envs, StepEnv) or not envs.same:
        raise InputError('stable_baselines takes environments of drevo.envs made with autoreset="SameStep"')

    class StableEnvs(_Wrapped, base):  # type: ignore[misc,valid-type]
        pass

    stable = StableEnvs.__new__(StableEnvs)
    stable.envs, stable.returns, stable.lengths = envs, np.zeros(envs.num_envs), np.zeros(envs.num_envs, int)
    base.__init__(stable, envs.num_envs, envs.single_observation_space, envs.single_action_space)
    return stable


class _Wrapped:
    """The methods of Stable-Baselines3's VecEnv."""

    envs: StepEnv
    returns: Array
    lengths: Array
    _seeds: Sequence[int | None]

    def reset(self) -> Array:
        seed = self._seeds[0] if self._seeds else None
        self._reset_seeds()  # type: ignore[attr-defined]
        self.returns[:], self.lengths[:] = 0.0, 0
        return self.envs.reset(seed=seed)[0]

    def step_async(self, actions: Array) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        observed, reward, ended, cut, infos_of_all = self.envs.step(self.actions)
        self.returns += reward
        self.lengths += 1
        over, infos = ended | cut, [dict[str, Any]() for _ in range(len(reward))]
        for k in np.flatnonzero(over):
            infos[k] = {
                "terminal_observation": infos_of_all["final_obs"][k],
                "TimeLimit.truncated": bool(cut[k] and not ended[k]),
                "episode": {"r": float(self.returns[k]), "l": int(self.lengths[k]), "t": 0.0},
            }  # fmt: skip
        self.returns[over], self.lengths[over] = 0.0, 0
        return observed, reward.astype(np.float32), over, infos

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name, None)] * len(self._get_indices(indices))  # type: ignore[attr-defined]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **given: Any) -> list[Any]:
        return [getattr(self.envs, method_name)(*args, **given)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(self._get_indices(indices))  # type: ignore[attr-defined]

    def get_images(self) -> list[Array | None]:
        return [self.envs.render(k) for k in range(self.envs.num_envs)]
