"""Laws as controllers of ros2_control: built against stand-ins of the interface headers, and run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import drevo
from drevo.cli.main import app
from drevo.ros2 import ros2_controller

CONTROLLER = """#pragma once
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace rclcpp {
struct Time { double s = 0.0; double seconds() const { return s; } };
struct Duration {};
struct Parameter {
  std::vector<std::string> many; std::string one;
  std::vector<std::string> as_string_array() const { return many; }
  std::string as_string() const { return one; }
};
}
namespace rclcpp_lifecycle {
struct State {};
struct LifecycleNode {
  std::map<std::string, rclcpp::Parameter> held;
  rclcpp::Parameter get_parameter(const std::string& name) const { return held.at(name); }
  rclcpp::Time now() const { return {}; }
};
}
namespace hardware_interface {
struct LoanedStateInterface { double x = 0.0; double get_value() const { return x; } };
struct LoanedCommandInterface { double x = 0.0; bool set_value(double y) { x = y; return true; } };
}
namespace controller_interface {
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };
struct InterfaceConfiguration { interface_configuration_type type; std::vector<std::string> names; };
class ControllerInterface {
 public:
  virtual ~ControllerInterface() = default;
  virtual CallbackReturn on_init() = 0;
  virtual CallbackReturn on_configure(const rclcpp_lifecycle::State&) = 0;
  virtual CallbackReturn on_activate(const rclcpp_lifecycle::State&) = 0;
  virtual CallbackReturn on_deactivate(const rclcpp_lifecycle::State&) = 0;
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual return_type update(const rclcpp::Time&, const rclcpp::Duration&) = 0;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() const { return node; }
  template <class T> T auto_declare(const std::string& name, const T& usual) { keep(name, usual); return usual; }
  void keep(const std::string& name, const std::vector<std::string>& x) { node->held[name].many = x; }
  void keep(const std::string& name, const std::string& x) { node->held[name].one = x; }
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;
  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node = std::make_shared<rclcpp_lifecycle::LifecycleNode>();
};
}
"""
PLUGINLIB = """#pragma once
#define PLUGINLIB_EXPORT_CLASS(kind, base) base* made_for_test() { return new kind; }
"""
MAIN = """
#include <cstdio>
int main()
{
  auto* c = made_for_test();
  rclcpp_lifecycle::State state;
  bool good = c->on_init() == controller_interface::CallbackReturn::SUCCESS;
  good = good && c->on_configure(state) == controller_interface::CallbackReturn::SUCCESS;
  const auto read = c->state_interface_configuration().names, written = c->command_interface_configuration().names;
  c->state_interfaces_.resize(read.size());
  c->command_interfaces_.resize(written.size());
  for (auto& x : c->state_interfaces_) if (std::scanf("%lf", &x.x) != 1) return 1;
  c->on_activate(state);
  good = good && c->update({0.3}, {}) == controller_interface::return_type::OK;
  std::printf("{\\"read\\": [");
  for (size_t k = 0; k < read.size(); ++k) std::printf("%s\\"%s\\"", k ? ", " : "", read[k].c_str());
  std::printf("], \\"good\\": %s, \\"written\\": [", good ? "true" : "false");
  for (size_t k = 0; k < written.size(); ++k) std::printf("%s\\"%s\\"", k ? ", " : "", written[k].c_str());
  std::printf("], \\"tau\\": [");
  for (size_t k = 0; k < written.size(); ++k) std::printf("%s%.17g", k ? ", " : "", c->command_interfaces_[k].x);
  for (auto& x : c->state_interfaces_) x.x = NAN;
  const bool ends = c->update({0.3}, {}) == controller_interface::return_type::ERROR;
  std::printf("], \\"ends\\": %s}", ends ? "true" : "false");
}
"""


def run(package: Path, place: Path, state: Any) -> Any:
    """The controller, built and run once with these values of its state interfaces."""
    for name, text in (("controller_interface/controller_interface.hpp", CONTROLLER),
                       ("pluginlib/class_list_macros.hpp", PLUGINLIB)):  # fmt: skip
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    source = place / "main.cpp"
    source.write_text((package / "src/controller.cpp").read_text() + MAIN)
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(place)]
    subprocess.run(["g++", *flags, "-o", place / "run", source], check=True)
    given = " ".join(repr(float(x)) for x in state)
    done = subprocess.run([place / "run"], input=given, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


KINDS = (
    "computed_torque", "moving", "gravity_compensation", "operational_space", "impedance", "admittance", "hybrid",
)  # fmt: skip


def laws(robot: drevo.Robot) -> dict[str, Any]:
    """A law of every kind."""
    q, control = np.full(6, 0.3), drevo.control
    return {
        "computed_torque": control.computed_torque(robot, q, 4.0, 3.0),
        "moving": control.computed_torque(robot, lambda t: [0.1 * drevo.sin(t)] * 6, 4.0, 3.0),
        "gravity_compensation": control.gravity_compensation(robot, 0.5),
        "operational_space": control.operational_space(robot, "link6", 4.0, 3.0),
        "impedance": control.impedance(robot, "link6", 40.0, 3.0, axes="x y z"),
        "admittance": control.admittance(robot, "link6", 40.0, 3.0, 2.0),
        "hybrid": control.hybrid(robot, "link6", 4.0, 3.0, axes="x y", force_axes="z", force=5.0),
    }


@pytest.mark.needs("g++")
@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_commands_what_its_law_says(kind: str, tmp_path: Path) -> None:
    robot, rng = drevo.load("puma560"), np.random.default_rng(1)
    law = laws(robot)[kind]
    q, v, sensed = rng.uniform(-1, 1, 6), rng.normal(size=6), rng.normal(size=6)
    files = ros2_controller(law, tmp_path, name=f"puma_{kind}")
    senses = getattr(law, "senses", False)
    said = run(files[0].parent, tmp_path, [*q, *v, *(sensed if senses else ())])
    R = robot.pose(q, "link6")[:3, :3]
    more = [np.concatenate([R @ sensed[:3], R @ sensed[3:]])] if senses else []
    np.testing.assert_allclose(said["tau"], law(0.3, q, v, *more), rtol=1e-9, atol=1e-9)
    assert said["good"] and said["ends"] and said["written"] == [f"joint{k}/effort" for k in range(1, 7)]
    assert said["read"][6] == "joint1/velocity" and len(said["read"]) == 12 + 6 * senses
    texts = {f.name: f.read_text() for f in files}
    assert not any("@" in text for name, text in texts.items() if name != "package.xml")
    assert f"{'puma_' + kind}/Controller" in texts["plugin.xml"] and "ros2_control" in texts["README.md"]


@pytest.mark.needs("g++")
def test_the_command_line_writes_one(tmp_path: Path) -> None:
    words = ["export", "puma560", "impedance", "--ros2", "--link", "link6", "--kp", "50", "--kd", "9",
             "--axes", "x y z", "--q", "joint2=-0.4", "-o", str(tmp_path)]  # fmt: skip
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    robot = drevo.load("puma560")
    q = robot.q_of(joint2=-0.4)
    law = drevo.control.impedance(robot, "link6", 50.0, 9.0, robot.pose(q, "link6"), axes="x y z")
    said = run(tmp_path / "puma560_impedance", tmp_path, [*np.full(6, 0.1), *np.full(6, 0.2)])
    np.testing.assert_allclose(said["tau"], law(0.3, np.full(6, 0.1), np.full(6, 0.2)), rtol=1e-9)
    c = CliRunner().invoke(app, [*words[:3], *words[4:]])
    assert c.exit_code == 0 and (tmp_path / "puma560_impedance.c").exists(), c.output


def test_what_is_no_controller_is_said() -> None:
    with pytest.raises(drevo.DrevoError, match="is no law of drevo"):
        ros2_controller(drevo.load("puma560"))
    robot = drevo.load("biped", base="floating")
    with pytest.raises(drevo.DrevoError, match="one number each"):
        ros2_controller(drevo.control.pd(robot, robot.neutral(), 1.0, 1.0))
    result = CliRunner().invoke(app, ["export", "puma560", "impedance", "--ros2"])
    assert result.exit_code == 2 and "--link" in result.output
