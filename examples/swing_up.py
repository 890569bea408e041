"""A cart that swings its pole up: direct collocation by CasADi and IPOPT on Drevo's equations.

pip install drevo[casadi]
"""

from __future__ import annotations

import casadi
import numpy as np

import drevo

KNOTS, DURATION, FORCE = 60, 2.0, 20.0


def cart() -> drevo.Robot:
    b = drevo.Builder("cart", gravity=(0, 0, -9.81))
    b.body("cart", joint="prismatic", axis=(1, 0, 0), mass=1.0)
    b.body("pole", parent="cart", joint="revolute", axis=(0, 1, 0), mass=0.3, com=(0, 0, -0.5),
           inertia=np.diag([0.02, 0.02, 0.001]))  # fmt: skip
    return b.robot()


def main() -> None:
    accelerations = drevo.casadi.function(cart(), "forward_dynamics")
    h, opti = DURATION / KNOTS, casadi.Opti()
    x, u = opti.variable(4, KNOTS + 1), opti.variable(1, KNOTS + 1)

    def rate(k: int) -> casadi.MX:
        return casadi.vertcat(x[2:, k], accelerations(x[:2, k], x[2:, k], casadi.vertcat(u[k], 0)))

    for k in range(KNOTS):  # trapezoidal collocation
        opti.subject_to(x[:, k + 1] == x[:, k] + 0.5 * h * (rate(k) + rate(k + 1)))
    opti.subject_to(x[:, 0] == 0)
    opti.subject_to(x[:, KNOTS] == np.array([0, np.pi, 0, 0]))
    opti.subject_to(opti.bounded(-FORCE, u, FORCE))
    opti.subject_to(opti.bounded(-1.0, x[0, :], 1.0))
    opti.minimize(h * casadi.sumsqr(u))
    opti.set_initial(x, np.outer([0, np.pi, 0, 0], np.linspace(0, 1, KNOTS + 1)))
    opti.solver("ipopt", {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
    found = opti.solve()
    most, steps = found.value(u).max(), found.stats()["iter_count"]
    print(f"swung up in {DURATION} s with {most:.1f} N at most, {steps} iterations")


if __name__ == "__main__":
    main()
