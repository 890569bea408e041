"""Levels of processors: which instructions code may have, how wide its vectors are, and what a machine lacks.

Without a word each machine gets the widest vectors that it has. DREVO_PROCESSOR names another level that it can
run, before Python starts. Bits are the same at every level that fuses products and sums, which is all but sse2.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import EmitError, InputError

SETTING = "DREVO_PROCESSOR"


class Level(NamedTuple):
    """needs: features, by LLVM's names. cpu: what code is made for, or the machine's own with all it has.

    bytes: of a vector. fma: whether there are multiply-adds of one rounding. arm: of AArch64, else of x86-64.
    """

    needs: tuple[str, ...]
    cpu: str
    bytes: int
    fma: bool = True
    arm: bool = False


_AVX512 = ("avx512f", "avx512dq", "avx512vl", "fma")
LEVELS = {
    "avx512": Level(_AVX512, "", 64),
    "avx512-256": Level(
        _AVX512, "", 32
    ),  # the same instructions on narrower vectors, and more registers than AVX2
    "avx2": Level(("avx2", "fma", "bmi2"), "x86-64-v3", 32),
    "sse2": Level(("sse2",), "x86-64", 16, False),
    "neon": Level(("neon",), "", 16, arm=True),
}

# whose intrinsics begin with the key; those of x86 go on with the extension that they need
_ARCHITECTURES = {
    "x86": ("x86_64", "amd64", "i386", "i686"), "aarch64": ("aarch64", "arm64"), "arm": ("arm", "thumb"),
    "nvvm": ("nvptx",), "wasm": ("wasm",), "riscv": ("riscv",),
}  # fmt: skip
_EVERY_X86_64 = frozenset({"sse", "sse2"})


def require_instructions(module: Any, triple: str, features: str) -> None:
    """EmitError where a module of LLVM calls instructions that its machine lacks: LLVM would end the process."""
    has = _EVERY_X86_64 | extensions(features)
    for name in (str(x.name) for x in module.functions if x.is_declaration and x.name.startswith("llvm.")):
        kind, extension = [*name.split("."), ""][1:3]
        needed = "avx512f" if extension == "avx512" else extension
        lacking = kind == "x86" and needed not in has and needed
        if not triple.startswith(_ARCHITECTURES.get(kind, triple)) or lacking:
            raise EmitError(
                f"LLVM would end the process: the code calls {name}, and {triple} as it is compiled for has no "
                f"{lacking or kind}; make it for this machine's own level ({SETTING})"
            )


def extensions(features: str) -> frozenset[str]:
    """Instruction sets that LLVM is told a machine has, of its list "+avx2,-avx512f"."""
    return frozenset(x[1:] for x in features.split(",") if x.startswith("+"))


def asked_level() -> str:
    """The level that is asked for, or none."""
    return os.environ.get(SETTING, "")


def runnable(arm: bool, has: Mapping[str, bool]) -> list[str]:
    """The levels that a machine of these features can run."""
    return [name for name, x in LEVELS.items() if x.arm == arm and all(map(has.get, x.needs))]


def chosen_level(arm: bool, has: Mapping[str, bool]) -> Level | None:
    """The level that is asked for; InputError where there is none, or this machine cannot run it."""
    name = asked_level()
    if not name:
        return None
    able = runnable(arm, has)
    if name not in able:
        why = "needs instructions that this processor lacks" if name in LEVELS else "is no level"
        raise InputError(f"{SETTING}={name!r} {why}; it can run {', '.join(able)}")
    return LEVELS[name]
