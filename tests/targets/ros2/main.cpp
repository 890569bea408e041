#include <cstdio>
#include <inverse_dynamics_interface/inverse_dynamics_interface.hpp>
std::unique_ptr<inverse_dynamics_interface::InverseDynamicsInterface> made();
template <class T> static void put(const T& x) { for (long i = 0; i < x.size(); ++i) std::printf("%.17g\n", x.data()[i]); }
int main()
{
  auto r = made();
  r->initialize();
  Eigen::VectorXd q(JOINTS), v(JOINTS), a(JOINTS);
  Eigen::Matrix<double, 6, 1> w;
  for (int i = 0; i < JOINTS; ++i) { q[i] = 0.1 * (i + 1); v[i] = 0.2 - 0.3 * i; a[i] = 1.0 + i; }
  for (int i = 0; i < 6; ++i) w[i] = 1.0 - 0.5 * i;
  put(r->getInertiaMatrix(q)); put(r->getCoriolisVector(q, v)); put(r->getGravityVector(q));
  put(r->getFrictionVector(v)); put(r->getExternalTorques(q, w)); put(r->getTorques(q, v, a, w));
  try { r->getGravityVector(Eigen::VectorXd::Zero(JOINTS + 1)); return 1; } catch (const std::invalid_argument&) {}
}
