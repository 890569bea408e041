"""Errors are caught as Python's own, and words of the field lead to Drevo's names."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import drevo
from drevo.errors import MissingFileError, UnknownNameError


def test_a_missing_file_is_a_file_that_is_not_found() -> None:
    for name in ("no-such-file.urdf", "no-such-robot"):
        with pytest.raises(FileNotFoundError) as caught:
            drevo.load(name)
        assert isinstance(caught.value, drevo.ModelError) and name.split(".")[0] in str(caught.value)


def test_a_file_that_is_refused_names_the_command_that_mends_it(tmp_path: Path) -> None:
    text = "<robot name='r'><link name='a'/><link name='b'><inertial><mass value='1'/><inertia ixx='-1' iyy='1'"
    file = tmp_path / "r.urdf"
    file.write_text(
        f"{text} izz='1'/></inertial></link><joint name='j' type='revolute'><parent link='a'/><child link='b'/>"
        "<limit effort='1' velocity='1' lower='-1' upper='1'/></joint></robot>"
    )
    with pytest.raises(drevo.ModelError, match="negative") as caught:
        drevo.load(file)
    assert f"drevo check {file} --fix -o NEW" in str(caught.value) and caught.value.problems


def test_wrong_names_are_key_errors_and_wrong_values_value_errors() -> None:
    robot = drevo.load("puma560")
    for call in (
        lambda: robot.pose(robot.neutral(), "no_link"),
        lambda: drevo.compile(robot, "no_quantity"),
        lambda: robot.q_of(no_joint=1.0),
    ):
        with pytest.raises(KeyError) as caught:
            call()
        assert isinstance(caught.value, (drevo.TraceError, drevo.InputError)) and not str(caught.value).startswith(
            "'"
        )
    with pytest.raises(ValueError, match="shape"):
        robot.mass_matrix(np.zeros(3))
    with pytest.raises(ValueError, match="must be finite"):
        robot.mass_matrix(np.full(6, np.nan))


@pytest.mark.parametrize("kind", [MissingFileError, UnknownNameError, drevo.NumericsError])
def test_errors_survive_pickle(kind: type[drevo.DrevoError]) -> None:
    again = pickle.loads(pickle.dumps(kind("a sentence")))  # noqa: S301
    assert type(again) is kind and str(again) == "a sentence"


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("fk", "pose"), ("forward_kinematics", "pose"), ("com", "center_of_mass"), ("dof", "nv"),
        ("limits", "lower"), ("lower_limits", "lower"), ("effort_limits", "max_effort"),
        ("nonlinear_effects", "bias"),
    ],
)  # fmt: skip
def test_words_of_the_field_lead_to_the_name(word: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"did you mean '{name}'"):
        getattr(drevo.load("puma560"), word)


def test_the_inertia_matrix_is_the_mass_matrix() -> None:
    with pytest.raises(drevo.TraceError, match="did you mean 'mass_matrix'"):
        drevo.write_out(drevo.load("puma560"), "inertia_matrix")
