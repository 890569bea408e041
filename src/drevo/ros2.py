"""A ROS 2 package that computes the dynamics of a robot: a plug-in of `inverse_dynamics_interface`, in plain C++.

The interface is that of the packages of the University of Salerno for inverse dynamics in ROS 2: the inertia
matrix, Coriolis and gravity vectors, friction, and the torques of a wrench on a link. The package needs Eigen,
rclcpp, pluginlib and the interface, and nothing of Drevo.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from .documents.languages.code import comment
from .documents.sequence.names import identifier, plain
from .errors import InputError
from .io.files import write_whole
from .io.given import Array
from .io.packages import VERSION
from .robot.face import Robot
from .robot.writing import write_out

QUANTITIES = ("mass_matrix", "bias", "gravity", "inverse_dynamics")


def ros2_package(robot: Robot, folder: str | Path = ".", *, link: str = "") -> tuple[Path, ...]:
    """Writes the package NAME_inverse_dynamics into a folder; its files. link: where wrenches act, else the last.

    Joints are in the order of `robot.joint_names`; wrenches are force, then moment, at the link's origin in the
    axes of the base. Raises InputError for robots whose coordinates are not one number a joint.
    """
    if robot.nq != robot.nv:
        raise InputError("ros2: the interface has one number for each joint; this robot's q holds quaternions")
    tip = link or robot.link_names[-1]
    name = f"{identifier(robot.name).lower().strip('_')}_inverse_dynamics"
    texts = [write_out(robot, q).c() for q in QUANTITIES] + [
        write_out(robot, "jacobian", link=tip, frame="local_world_aligned").c()
    ]
    files = {
        "package.xml": PACKAGE, "CMakeLists.txt": BUILD, "plugin.xml": PLUGIN, "src/plugin.cpp": SOURCE,
        "README.md": GUIDE,
    }  # fmt: skip
    values = {
        "NAME": name, "ROBOT": comment(robot.name), "XML": escape(plain(robot.name)), "LINK": comment(tip),
        "VERSION": VERSION, "SIZE": str(robot.nv), "DAMPING": _numbers(robot.damping),
        "FRICTION": _numbers(robot.friction), "JOINTS": ", ".join(map(comment, robot.joint_names)),
        "EQUATIONS": "\n".join(map(_inner, texts)),
    }  # fmt: skip
    return tuple(
        write_whole("ros2", Path(folder) / name / file, _filled(text, values)) for file, text in files.items()
    )


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
  <description>Inverse dynamics of @XML@, written by Drevo.</description>
  <maintainer email="nobody@example.com">nobody</maintainer>
  <license>Apache-2.0</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
  <depend>eigen</depend>
  <depend>inverse_dynamics_interface</depend>
  <depend>pluginlib</depend>
  <depend>rclcpp</depend>
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
GUIDE = """\
# @NAME@

Inverse dynamics of @ROBOT@ as a plug-in of `inverse_dynamics_interface`, written by Drevo @VERSION@.
Joints, in the order of all vectors: @JOINTS@.
Wrenches act on @LINK@: force, then moment, at its origin in the axes of the base.

## Build

In a workspace of ROS 2 (Humble or later), with this folder and the package `inverse_dynamics_interface` in `src`:

```sh
source /opt/ros/$ROS_DISTRO/setup.bash
rosdep install --from-paths src --ignore-src -y
colcon build --packages-up-to @NAME@ --cmake-args -DCMAKE_BUILD_TYPE=Release
source install/setup.bash
```

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
