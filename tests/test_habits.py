"""The suite's own habits: no clock decides, all failures show, nothing is skipped in silence where CI is set."""

from __future__ import annotations

import re
from pathlib import Path

import needed
import pytest
import strategies
from reference import on_each
from robot_texts import from_json

from drevo.model.description import Model

TESTS = Path(__file__).parent
ROOT = TESTS.parent


def test_no_test_asserts_a_time() -> None:
    clocks = re.compile(
        r"\b(process_time|thread_time|perf_counter|monotonic|timeit|default_timer|getrusage)(_ns)?\("
    )
    assert not [p.name for p in TESTS.glob("*.py") if clocks.search(p.read_text(encoding="utf-8"))]


def test_all_trees_that_fail_are_told() -> None:
    def check(model: Model, k: int) -> None:
        assert k % 2, f"{k} is even"
        if k == 3:
            raise ZeroDivisionError("three")

    trees = [strategies.robot(seed) for seed in range(5)]
    with pytest.raises(AssertionError, match=r"4 of 5 trees fail\ntree 0, .*0 is even") as caught:
        on_each(trees, check)
    assert re.findall(r"^tree (\d)", str(caught.value), re.MULTILINE) == ["0", "2", "3", "4"]
    assert from_json(str(caught.value).split(":\n")[1].split("\ntree ")[0]).name == trees[0].name
    on_each(trees, lambda model, k: None)


def test_a_missing_tool_fails_where_CI_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for ci, absent, outcome in (
        ("", "", pytest.skip),
        ("true", "", pytest.fail),
        ("true", "a,no-such", pytest.skip),
    ):
        monkeypatch.setenv("CI", ci)
        monkeypatch.setenv("DREVO_ABSENT", absent)
        with pytest.raises(outcome.Exception, match="no-such is not installed"):
            needed.require("pytest", "no-such")
    needed.require("pytest")


def test_versions_of_tools_stand_in_one_place() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dev = re.findall(r'"([\w-]+)(==)?', re.findall(r"^dev = \[(.*)\]", project, re.MULTILINE)[0])
    assert {name for name, _ in dev} >= {"ruff", "mypy", "import-linter", "pre-commit"} and all(p for _, p in dev)
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "rev:" not in hooks and set(re.findall("entry: .venv/bin/([a-z-]+)", hooks)) == {
        "ruff",
        "mypy",
        "lint-imports",
    }
