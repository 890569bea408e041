// Pinocchio's algorithms in a bare C++ loop: a child process of inner_loops.py.
//
//     pin_inner_loop MODEL STATES
//
// MODEL, text: a line per joint: parent type placement(R by rows, p) mass com inertia(xx xy yy xz yz zz about com).
// STATES, raw doubles: rows of q, v, a, tau.
// A line "ALGORITHM FIRST COUNT" on standard input runs states FIRST .. FIRST + COUNT - 1 (modulo their number)
// and answers the nanoseconds; "show ALGORITHM K" answers the results of state K.

#include <chrono>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

namespace pin = pinocchio;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct State {
  VectorXd q, v, a, tau;
};

static pin::JointModel joint(const std::string & type) {
  if (type == "JointModelRX") return pin::JointModelRX();
  if (type == "JointModelRY") return pin::JointModelRY();
  if (type == "JointModelRZ") return pin::JointModelRZ();
  if (type == "JointModelFreeFlyer") return pin::JointModelFreeFlyer();
  throw std::runtime_error("joint type " + type + " is not known to pin_inner_loop.cpp");
}

static pin::Model read_model(const char * path) {
  std::ifstream file(path);
  pin::Model model;
  std::size_t parent;
  std::string type;
  while (file >> parent >> type) {
    double x[22];
    for (double & value : x) file >> value;
    Eigen::Matrix3d R;
    R << x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8];
    const pin::Symmetric3 inertia(x[16], x[17], x[18], x[19], x[20], x[21]);
    const Eigen::Vector3d p(x[9], x[10], x[11]), com(x[13], x[14], x[15]);
    const auto id = model.addJoint(parent, joint(type), pin::SE3(R, p), "joint" + std::to_string(model.njoints));
    model.appendBodyToJoint(id, pin::Inertia(x[12], com, inertia), pin::SE3::Identity());
  }
  return model;
}

static std::vector<State> read_states(const char * path, const pin::Model & model) {
  std::ifstream file(path, std::ios::binary);
  std::vector<State> states;
  const int nq = model.nq, nv = model.nv;
  std::vector<double> row(nq + 3 * nv);
  while (file.read(reinterpret_cast<char *>(row.data()), row.size() * sizeof(double))) {
    const Eigen::Map<VectorXd> x(row.data(), row.size());
    states.push_back({x.head(nq), x.segment(nq, nv), x.segment(nq + nv, nv), x.tail(nv)});
  }
  return states;
}

int main(int, char ** arguments) {
  const pin::Model model = read_model(arguments[1]);
  const std::vector<State> states = read_states(arguments[2], model);
  pin::Data data(model);
  const std::map<std::string, std::function<void(const State &)>> run = {
    {"pose", [&](const State & s) { pin::forwardKinematics(model, data, s.q); }},
    {"inverse_dynamics", [&](const State & s) { pin::rnea(model, data, s.q, s.v, s.a); }},
    {"mass_matrix", [&](const State & s) { pin::crba(model, data, s.q, pin::Convention::WORLD); }},
    {"mass_matrix_local", [&](const State & s) { pin::crba(model, data, s.q, pin::Convention::LOCAL); }},
    {"forward_dynamics", [&](const State & s) { pin::aba(model, data, s.q, s.v, s.tau, pin::Convention::WORLD); }},
    {"forward_dynamics_local", [&](const State & s) { pin::aba(model, data, s.q, s.v, s.tau, pin::Convention::LOCAL); }},
    {"inverse_dynamics_derivatives",
     [&](const State & s) { pin::computeRNEADerivatives(model, data, s.q, s.v, s.a); }},
    {"forward_dynamics_derivatives",
     [&](const State & s) { pin::computeABADerivatives(model, data, s.q, s.v, s.tau); }},
  };
  const std::map<std::string, std::function<MatrixXd()>> result = {
    {"pose", [&] { return MatrixXd(data.oMi.back().toHomogeneousMatrix()); }},
    {"inverse_dynamics", [&] { return MatrixXd(data.tau); }},
    {"mass_matrix", [&] { return MatrixXd(data.M); }},
    {"mass_matrix_local", [&] { return MatrixXd(data.M); }},
    {"forward_dynamics", [&] { return MatrixXd(data.ddq); }},
    {"forward_dynamics_local", [&] { return MatrixXd(data.ddq); }},
    {"inverse_dynamics_derivatives", [&] { return MatrixXd(data.dtau_dq); }},
    {"forward_dynamics_derivatives", [&] { return MatrixXd(data.ddq_dq); }},
  };
  std::string word;
  while (std::cin >> word) {
    if (word == "show") {
      std::size_t k;
      std::cin >> word >> k;
      run.at(word)(states.at(k));
      const MatrixXd found = result.at(word)();
      std::cout << std::setprecision(17);
      for (Eigen::Index r = 0; r < found.rows(); ++r)
        for (Eigen::Index c = 0; c < found.cols(); ++c) std::cout << found(r, c) << ' ';
      std::cout << std::endl;
      continue;
    }
    std::size_t first, count;
    std::cin >> first >> count;
    const auto & call = run.at(word);
    std::size_t k = first % states.size();
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t n = 0; n < count; ++n) {
      call(states[k]);
      if (++k == states.size()) k = 0;
    }
    const auto stop = std::chrono::steady_clock::now();
    std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(stop - start).count() << std::endl;
  }
}
