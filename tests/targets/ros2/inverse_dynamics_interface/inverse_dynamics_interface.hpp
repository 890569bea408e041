// The functions that a plug-in fills, for a test without ROS.
#pragma once
#include <Eigen/Core>
#include <rclcpp/node_interfaces/node_parameters_interface.hpp>
#include <string>
namespace inverse_dynamics_interface {
class InverseDynamicsInterface
{
public:
  using V = Eigen::VectorXd;
  using Wrench = Eigen::Matrix<double, 6, 1>;
  virtual ~InverseDynamicsInterface() {}
  virtual void initialize(rclcpp::node_interfaces::NodeParametersInterface::ConstSharedPtr p = nullptr,
                          const std::string& space = "", const std::string& description = "") = 0;
  virtual Eigen::MatrixXd getInertiaMatrix(const V& q) const = 0;
  virtual V getCoriolisVector(const V& q, const V& v) const = 0;
  virtual V getGravityVector(const V& q) const = 0;
  virtual V getFrictionVector(const V& v) const = 0;
  virtual V getExternalTorques(const V& q, const Wrench& w) const = 0;
  virtual V getTorques(const V& q, const V& v, const V& a, const Wrench& w) const = 0;
};
}
