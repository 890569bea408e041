// What a plug-in sees of rclcpp, for a test without ROS.
#pragma once
#include <memory>
namespace rclcpp { namespace node_interfaces {
struct NodeParametersInterface { using ConstSharedPtr = std::shared_ptr<const NodeParametersInterface>; };
}}
