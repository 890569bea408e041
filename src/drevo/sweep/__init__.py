"""Sweeps: a quantity over many states, cut into shards that any machine computes alike, in any order.

    drevo.sweep.run("plan.toml", "out", pool="ray", workers=8)

A shard depends on its number alone; results come together in the order of the shards. So they are the same to the
bit for any number of workers, and after any number of interruptions.
"""

from ..io.given import asked_all
from .plan import EXAMPLE, Plan, read_plan
from .run import Swept, run
from .shards import run_shard

__all__ = ["EXAMPLE", "Plan", "Swept", "read_plan", "run", "run_shard"]

asked_all(__name__)
