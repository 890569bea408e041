"""Every tolerance of the suite against other systems and laws, with where it comes from.

Errors are divided by the largest term of what is computed, not by the result, which may cancel. eps = 2^-52.
"""

from __future__ import annotations

import numpy as np

EPS = float(np.finfo(float).eps)

# A sum of n products each good to a few eps, over n <= 30 links and about 20 roundings a link: 30 * 20 * eps
# = 1.3e-13 if every rounding fell the same way. Both sides err, and published robots go to 100 links.
DYNAMICS = 1e-12  # inverse dynamics, bias, gravity, mass matrix, energies, momentum
# Products of rotations only: each link adds at most about 4 eps to the entries, 100 links 9e-14.
KINEMATICS = 1e-13  # poses, Jacobians, velocities
# Accelerations are sums over the path of products of three of these.
ACCELERATIONS = 1e-12
# Sums of products of three quantities, each good to DYNAMICS, over the depth; the mark that users are given.
DERIVATIVES = 1e-9
# Differences of order 8 over h = 0.01 on motions whose ninth derivative is of order 10^4 times the first:
# truncation h^8 10^4 / 630 < 1e-12, cancellation 3 eps / h = 1e-13.
DIFFERENCES = 1e-9
# Complex steps have neither: what remains are the roundings of the sum.
COMPLEX_STEP = 1e-12
# The same sums in another order.
SAME = 1e-13
# Sums of second-order terms that must cancel: rates of energy, dM/dt - 2 C.
RATES = 1e-11
# Vectors printed with 17 digits: one rounding of each input, amplified as DYNAMICS.
VECTORS = 1e-12
# Conditions under which a matrix says nothing: 64 n eps cond(M) reaches 1.
HOPELESS = 1e14


def solving(n: int, cond: float) -> float:
    """Forward dynamics by factors of M: backward stable, so the error is of the order n eps cond(M)."""
    return max(1e-11, 64.0 * n * EPS * cond)


def inverting(n: int, cond: float) -> float:
    """Derivatives of forward dynamics: those of inverse dynamics, then a solution with M."""
    return max(DERIVATIVES, 64.0 * n * EPS * cond)
