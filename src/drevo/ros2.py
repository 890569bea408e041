"""A ROS 2 package that computes the dynamics of a robot: a plug-in of `inverse_dynamics_interface`, in plain C++.

The interface is that of the packages of the University of Salerno for inverse dynamics in ROS 2: the inertia
matrix, Coriolis and gravity vectors, friction, and the torques of a wrench on a link. The package needs Eigen,
rclcpp, pluginlib and the interface, and nothing of Drevo.

A law of control as a package with a controller of ros2_control: the law and its model are inside.
"""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

from .control.law import Law
from .documents.languages.code import comment
from .documents.sequence.names import identifier, plain
from .errors import InputError, shown
from .io.files import write_whole
from .io.given import Array
from .io.packages import VERSION
from .robot.face import Robot
from .robot.writing import write_out

NODE_QUANTITIES = ("mass_matrix", "bias", "gravity", "inverse_dynamics")


def ros2_package(robot: Robot, folder: str | Path = ".", *, link: str = "") -> tuple[Path, ...]:
    """Writes the package NAME_inverse_dynamics into a folder; its files. link: where wrenches act, else the last.

    Joints are in the order of `robot.joint_names`; wrenches are force, then moment, at the link's origin in the
    axes of the base. Raises InputError for robots whose coordinates are not one number a joint.
    """
    if robot.nq != robot.nv:
        raise InputError("ros2: the interface has one number for each joint; this robot's q holds quaternions")
    tip = link or robot.link_names[-1]
    name = f"{identifier(robot.name).lower().strip('_')}_inverse_dynamics"
    texts = [write_out(robot, q).c() for q in NODE_QUANTITIES] + [
        write_out(robot, "jacobian", link=tip, frame="local_world_aligned").c()
    ]
    files = {
        "package.xml": PACKAGE, "CMakeLists.txt": BUILD, "plugin.xml": PLUGIN, "src/plugin.cpp": SOURCE,
        "README.md": GUIDE,
    }  # fmt: skip
    values = {
        "ABOUT": "Inverse dynamics",
        "DEPENDS": _depends("eigen", "inverse_dynamics_interface", "pluginlib", "rclcpp"),
        "NAME": name, "ROBOT": comment(robot.name), "XML": escape(plain(robot.name)), "LINK": comment(tip),
        "VERSION": VERSION, "SIZE": str(robot.nv), "DAMPING": _numbers(robot.damping),
        "FRICTION": _numbers(robot.friction), "JOINTS": ", ".join(map(comment, robot.joint_names)),
        "EQUATIONS": "\n".join(map(_inner, texts)),
    }  # fmt: skip
    return tuple(
        write_whole("ros2", Path(folder) / name / file, _filled(text, values)) for file, text in files.items()
    )


def _depends(*packages: str) -> str:
    return "\n".join(f"  <depend>{name}</depend>" for name in packages)


def _inner(text: str) -> str:
    """C to stand inside a namespace of C++."""
    return text.replace("#include <math.h>\n", "").replace("\nvoid ", "\nstatic void ")


def _numbers(values: Array) -> str:
    return ", ".join(repr(float(x)) for x in values)


def _filled(text: str, values: dict[str, str]) -> str:
    return re.sub("@([A-Z]+)@", lambda key: values[key[1]], text)  # at once: a name may hold @SIZE@


PACKAGE = """\
<?xml version="1.0"?>
<package format="3">
  <name>@NAME@</name>
  <version>@VERSION@</version>
  <description>@ABOUT@ of @XML@, written by Drevo.</description>
  <maintainer email="nobody@example.com">nobody</maintainer>
  <license>Apache-2.0</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
@DEPENDS@
  <export>
    <build_type>ament_cmake</build_type>
  </export>
</package>
"""
BUILD = """\
cmake_minimum_required(VERSION 3.8)
project(@NAME@)
find_package(ament_cmake REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(inverse_dynamics_interface REQUIRED)
find_package(pluginlib REQUIRED)
find_package(rclcpp REQUIRED)
add_library(@NAME@ SHARED src/plugin.cpp)
target_compile_features(@NAME@ PUBLIC cxx_std_17)
target_link_libraries(@NAME@ PUBLIC Eigen3::Eigen pluginlib::pluginlib rclcpp::rclcpp
  inverse_dynamics_interface::inverse_dynamics_interface_lib)
pluginlib_export_plugin_description_file(inverse_dynamics_interface plugin.xml)
install(TARGETS @NAME@ ARCHIVE DESTINATION lib LIBRARY DESTINATION lib RUNTIME DESTINATION bin)
ament_package()
"""
PLUGIN = """\
<library path="@NAME@">
  <class base_class_type="inverse_dynamics_interface::InverseDynamicsInterface"
         type="@NAME@::InverseDynamics" name="@NAME@/InverseDynamics">
    <description>Inverse dynamics of @XML@, written by Drevo.</description>
  </class>
</library>
"""
COLCON = """\
```sh
source /opt/ros/$ROS_DISTRO/setup.bash
rosdep install --from-paths src --ignore-src -y
colcon build --packages-up-to @NAME@ --cmake-args -DCMAKE_BUILD_TYPE=Release
source install/setup.bash
```
"""
GUIDE = f"""\
# @NAME@

Inverse dynamics of @ROBOT@ as a plug-in of `inverse_dynamics_interface`, written by Drevo @VERSION@.
Joints, in the order of all vectors: @JOINTS@.
Wrenches act on @LINK@: force, then moment, at its origin in the axes of the base.

## Build

In a workspace of ROS 2 (Humble or later), with this folder and the package `inverse_dynamics_interface` in `src`:

{COLCON}
## Use

```cpp
#include <inverse_dynamics_interface/inverse_dynamics_interface.hpp>
#include <pluginlib/class_loader.hpp>

pluginlib::ClassLoader<inverse_dynamics_interface::InverseDynamicsInterface> loader(
  "inverse_dynamics_interface", "inverse_dynamics_interface::InverseDynamicsInterface");
auto robot = loader.createSharedInstance("@NAME@/InverseDynamics");
Eigen::VectorXd q = Eigen::VectorXd::Zero(@SIZE@);
Eigen::MatrixXd M = robot->getInertiaMatrix(q);
```

A controller of ros2_control that takes such plug-ins is given the name `@NAME@/InverseDynamics` as a parameter.
The robot is in the equations: no description is read when it runs. After a change of the robot, export it again.
"""
SOURCE = """\
// Inverse dynamics of @ROBOT@ as a plug-in of inverse_dynamics_interface, written by Drevo @VERSION@.
// Wrenches act on @LINK@: force, then moment, at its origin in the axes of the base.
#include <cmath>
#include <stdexcept>
#include <string>

#include <inverse_dynamics_interface/inverse_dynamics_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace @NAME@
{

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
constexpr int n = @SIZE@;

@EQUATIONS@

class InverseDynamics : public inverse_dynamics_interface::InverseDynamicsInterface
{
public:
  // The robot is in the equations: no parameter and no description is read.
  void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr = nullptr,
                  const std::string& = "", const std::string& = "") override {}

  Matrix getInertiaMatrix(const Vector& q) const override
  {
    double M[n * n];
    mass_matrix(checked(q), M);
    return Eigen::Map<const Eigen::Matrix<double, n, n, n == 1 ? Eigen::ColMajor : Eigen::RowMajor>>(M);
  }

  Vector getCoriolisVector(const Vector& q, const Vector& v) const override
  {
    Vector h(n);
    bias(checked(q), checked(v), h.data());
    return h - getGravityVector(q);
  }

  Vector getGravityVector(const Vector& q) const override
  {
    Vector g(n);
    gravity(checked(q), g.data());
    return g;
  }

  // Viscous and dry friction of the joints, as the robot's description has them.
  Vector getFrictionVector(const Vector& v) const override
  {
    static const double damping[] = {@DAMPING@}, dry[] = {@FRICTION@};
    checked(v);
    Vector f(n);
    for (int i = 0; i < n; ++i)
      f[i] = damping[i] * v[i] + dry[i] * ((v[i] > 0.0) - (v[i] < 0.0));
    return f;
  }

  Vector getExternalTorques(const Vector& q, const Eigen::Matrix<double, 6, 1>& wrench) const override
  {
    double J[6 * n];
    jacobian(checked(q), J);
    Vector tau = Vector::Zero(n);
    for (int i = 0; i < 6; ++i)
      for (int k = 0; k < n; ++k)
        tau[k] += J[n * i + k] * wrench[i];
    return tau;
  }

  Vector getTorques(const Vector& q, const Vector& v, const Vector& a,
                    const Eigen::Matrix<double, 6, 1>& wrench) const override
  {
    Vector tau(n);
    inverse_dynamics(checked(q), checked(v), checked(a), tau.data());
    return tau + getExternalTorques(q, wrench);
  }

private:
  static const double* checked(const Vector& x)
  {
    if (x.size() != n)
      throw std::invalid_argument("the robot has @SIZE@ joints, not " + std::to_string(x.size()));
    return x.data();
  }
};

}  // namespace @NAME@

PLUGINLIB_EXPORT_CLASS(@NAME@::InverseDynamics, inverse_dynamics_interface::InverseDynamicsInterface)
"""


# -- a controller of ros2_control --------------------------------------------------------------------------------


def ros2_controller(law: Law, folder: str | Path = ".", *, name: str = "") -> tuple[Path, ...]:
    """Writes a package with a law of `drevo.control` as a controller of ros2_control; its files.

    The law with its model and reference is plain C inside; it reads positions and velocities of all joints and
    commands efforts of the driven ones. Laws that sense read a force and torque sensor at the link's origin, in
    the link's axes. name: of the package, by default ROBOT_controller. Raises InputError for what is no such law,
    and for robots whose coordinates are not one number a joint.
    """
    robot = getattr(law, "robot", None)
    if not isinstance(law, Law) or not isinstance(robot, Robot):
        raise InputError(f"ros2: {shown(law)} is no law of drevo.control for a robot, such as control.impedance")
    if robot.nq != robot.nv:
        raise InputError("ros2: joints have one number each in ros2_control; this robot's q holds quaternions")
    senses, link = getattr(law, "senses", False), getattr(law, "link", "")
    called = identifier(name or f"{robot.name}_controller").lower().strip("_")
    driven = [bool(x) for x in getattr(law, "driven", (True,) * robot.nv)]
    texts = {"law": law.c("law")} | ({"sensor": write_out(robot, "pose", link=link).c()} if senses else {})
    values = {
        "ABOUT": type(law).__name__,
        "DEPENDS": _depends("controller_interface", "hardware_interface", "pluginlib", "rclcpp_lifecycle"),
        "NAME": called, "ROBOT": comment(robot.name), "XML": escape(plain(robot.name)), "LINK": comment(link),
        "VERSION": VERSION, "SIZE": str(robot.nv), "KIND": type(law).__name__,
        "EQUATIONS": "\n".join(f"namespace {key}\n{{\n{_inner(x)}\n}}" for key, x in texts.items()),
        "JOINTS": ", ".join(json.dumps(x) for x in robot.joint_names),
        "DRIVEN": ", ".join(str(k) for k, x in enumerate(driven) if x), "COMMANDS": str(sum(driven)),
        "SENSES": "true" if senses else "false", "LAW": "wrench, tau" if senses else "tau",
        "WRENCH": CONTROLLER_WRENCH if senses else "",
    }  # fmt: skip
    files = {
        "package.xml": PACKAGE, "CMakeLists.txt": CONTROLLER_BUILD, "plugin.xml": CONTROLLER_PLUGIN,
        "src/controller.cpp": CONTROLLER_SOURCE, "config/controller.yaml": CONTROLLER_PARAMETERS,
        "README.md": CONTROLLER_GUIDE,
    }  # fmt: skip
    return tuple(
        write_whole("ros2", Path(folder) / called / file, _filled(text, values)) for file, text in files.items()
    )


CONTROLLER_WRENCH = """
    double pose[16], wrench[6], sensed[6];
    sensor::pose(q, pose);
    for (int i = 0; i < 6; ++i) sensed[i] = state_interfaces_[2 * n + i].get_value();
    for (int i = 0; i < 3; ++i)
    {
      wrench[i] = wrench[3 + i] = 0.0;
      for (int k = 0; k < 3; ++k)
      {
        wrench[i] += pose[4 * i + k] * sensed[k];
        wrench[3 + i] += pose[4 * i + k] * sensed[3 + k];
      }
    }"""
CONTROLLER_BUILD = """\
cmake_minimum_required(VERSION 3.16)
project(@NAME@)
find_package(ament_cmake REQUIRED)
find_package(controller_interface REQUIRED)
find_package(hardware_interface REQUIRED)
find_package(pluginlib REQUIRED)
find_package(rclcpp_lifecycle REQUIRED)
add_library(@NAME@ SHARED src/controller.cpp)
target_compile_features(@NAME@ PUBLIC cxx_std_17)
ament_target_dependencies(@NAME@ controller_interface hardware_interface pluginlib rclcpp_lifecycle)
pluginlib_export_plugin_description_file(controller_interface plugin.xml)
install(TARGETS @NAME@ ARCHIVE DESTINATION lib LIBRARY DESTINATION lib RUNTIME DESTINATION bin)
install(DIRECTORY config DESTINATION share/${PROJECT_NAME})
ament_package()
"""
CONTROLLER_PLUGIN = """\
<library path="@NAME@">
  <class name="@NAME@/Controller" type="@NAME@::Controller"
         base_class_type="controller_interface::ControllerInterface">
    <description>@KIND@ of @XML@, written by Drevo.</description>
  </class>
</library>
"""
CONTROLLER_PARAMETERS = """\
controller_manager:
  ros__parameters:
    update_rate: 1000  # Hz
    @NAME@:
      type: @NAME@/Controller
@NAME@:
  ros__parameters:
    joints: [@JOINTS@]  # as the hardware names them, in this order
    sensor: force_torque_sensor  # read by laws that sense: @SENSES@ of this one
"""
CONTROLLER_GUIDE = f"""\
# @NAME@

@KIND@ of @ROBOT@ as a controller of ros2_control, written by Drevo @VERSION@. Model, gains and reference are in
the code. It reads positions and velocities of these joints, @JOINTS@, and commands efforts. Time begins when it is
activated. A law that senses reads a force and torque sensor at the origin of the link @LINK@, in its axes.

## Build

In a workspace of ROS 2 (Humble or later) with this folder in `src`:

{COLCON}
## Run

Give `config/controller.yaml` to the controller manager, then `ros2 run controller_manager spawner @NAME@`. The
hardware must have effort interfaces. Efforts that are not finite are not sent: the controller ends with an error.
Limits of the efforts are those of the hardware.
"""
CONTROLLER_SOURCE = """\
// @KIND@ of @ROBOT@ as a controller of ros2_control, written by Drevo @VERSION@.
#include <cmath>
#include <string>
#include <vector>

#include <controller_interface/controller_interface.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace @NAME@
{

@EQUATIONS@

constexpr int n = @SIZE@;
constexpr int commands = @COMMANDS@;
constexpr int driven[] = {@DRIVEN@};
constexpr bool senses = @SENSES@;

class Controller : public controller_interface::ControllerInterface
{
  using Answer = controller_interface::CallbackReturn;
  using Names = controller_interface::InterfaceConfiguration;
  std::vector<std::string> joints{@JOINTS@};
  std::string sensor_name = "force_torque_sensor";
  double start = 0.0;

public:
  Answer on_init() override
  {
    auto_declare<std::vector<std::string>>("joints", joints);
    auto_declare<std::string>("sensor", sensor_name);
    return Answer::SUCCESS;
  }

  Answer on_configure(const rclcpp_lifecycle::State&) override
  {
    joints = get_node()->get_parameter("joints").as_string_array();
    sensor_name = get_node()->get_parameter("sensor").as_string();
    return joints.size() == n ? Answer::SUCCESS : Answer::ERROR;
  }

  Names command_interface_configuration() const override
  {
    Names names{controller_interface::interface_configuration_type::INDIVIDUAL, {}};
    for (int k : driven) names.names.push_back(joints[k] + "/effort");
    return names;
  }

  // All positions, all velocities, then the force and the torque of the sensor.
  Names state_interface_configuration() const override
  {
    Names names{controller_interface::interface_configuration_type::INDIVIDUAL, {}};
    for (const char* kind : {"/position", "/velocity"})
      for (const auto& joint : joints) names.names.push_back(joint + kind);
    if (senses)
      for (const char* axis : {"/force.x", "/force.y", "/force.z", "/torque.x", "/torque.y", "/torque.z"})
        names.names.push_back(sensor_name + axis);
    return names;
  }

  Answer on_activate(const rclcpp_lifecycle::State&) override
  {
    start = get_node()->now().seconds();
    return Answer::SUCCESS;
  }

  Answer on_deactivate(const rclcpp_lifecycle::State&) override
  {
    for (int i = 0; i < commands; ++i) (void)command_interfaces_[i].set_value(0.0);
    return Answer::SUCCESS;
  }

  controller_interface::return_type update(const rclcpp::Time& time, const rclcpp::Duration&) override
  {
    double q[n], v[n], tau[n];
    const double t = time.seconds() - start;
    for (int i = 0; i < n; ++i)
    {
      q[i] = state_interfaces_[i].get_value();
      v[i] = state_interfaces_[n + i].get_value();
    }@WRENCH@
    law::law(&t, q, v, @LAW@);
    for (int k : driven)
      if (!std::isfinite(tau[k])) return controller_interface::return_type::ERROR;
    for (int i = 0; i < commands; ++i) (void)command_interfaces_[i].set_value(tau[driven[i]]);
    return controller_interface::return_type::OK;
  }
};

}  // namespace @NAME@

PLUGINLIB_EXPORT_CLASS(@NAME@::Controller, controller_interface::ControllerInterface)
"""
