// MuJoCo's stages in a bare C++ loop: a child process of inner_loops.py.
//
//     mujoco_inner_loop MODEL STATES        MODEL: a file that mj_loadXML reads
//
// STATES and the commands as in pin_inner_loop.cpp; q in MuJoCo's own order (scalar of the quaternion first).

#include <chrono>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <mujoco/mujoco.h>

int main(int, char ** arguments) {
  char error[1000] = "";
  mjModel * m = mj_loadXML(arguments[1], nullptr, error, sizeof error);
  if (!m) {
    std::cerr << error << std::endl;
    return 1;
  }
  mjData * d = mj_makeData(m);
  const int nq = m->nq, nv = m->nv, width = nq + 3 * nv;
  std::vector<double> states, row(width), out(nv * nv);
  std::ifstream file(arguments[2], std::ios::binary);
  while (file.read(reinterpret_cast<char *>(row.data()), width * sizeof(double)))
    states.insert(states.end(), row.begin(), row.end());
  const std::size_t many = states.size() / width;

  const auto pose = [&](const double * x) {
    mju_copy(d->qpos, x, nq);
    mj_kinematics(m, d);
  };
  const auto matrix = [&](const double * x) {
    pose(x);
    mj_comPos(m, d);
    mj_makeM(m, d);
  };
  const std::map<std::string, std::function<void(const double *)>> run = {
    {"pose", pose},
    {"mass_matrix", matrix},  // in MuJoCo's sparse form
    {"inverse_dynamics", [&](const double * x) {
       pose(x);
       mj_comPos(m, d);
       mju_copy(d->qvel, x + nq, nv);
       mju_copy(d->qacc, x + nq + nv, nv);
       mj_comVel(m, d);
       mj_rne(m, d, 1, out.data());
     }},
    {"forward_dynamics", [&](const double * x) {
       matrix(x);
       mj_factorM(m, d);
       mju_copy(d->qvel, x + nq, nv);
       mj_comVel(m, d);
       mj_rne(m, d, 0, out.data());
       mju_sub(out.data(), x + nq + 2 * nv, out.data(), nv);
       mj_solveM(m, d, d->qacc, out.data(), 1);
     }},
  };
  std::string word;
  while (std::cin >> word) {
    const bool show = word == "show";
    if (show) std::cin >> word;
    std::size_t first, count = 1;
    std::cin >> first;
    if (!show) std::cin >> count;
    const auto & call = run.at(word);
    std::size_t k = first % many;
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t n = 0; n < count; ++n) {
      call(states.data() + k * width);
      if (++k == many) k = 0;
    }
    const auto stop = std::chrono::steady_clock::now();
    if (!show) {
      std::cout << std::chrono::duration_cast<std::chrono::nanoseconds>(stop - start).count() << std::endl;
      continue;
    }
    const double * found = word == "forward_dynamics" ? d->qacc : out.data();
    for (int i = 0; i < nv; ++i) std::cout << std::setprecision(17) << found[i] << ' ';
    std::cout << std::endl;
  }
}
