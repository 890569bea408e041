"""The recursion of Kovalchuk, Kulakov and Semenov in base axes: an oracle for that in link axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from drevo.mechanics.formalisms import kovalchuk
from drevo.mechanics.formalisms.kovalchuk import BASE_STATE, LinkState, Load, Mechanism, Wrench
from drevo.mechanics.scalar import Scalar, Vector
from drevo.mechanics.spatial import UNIT_VECS, ZERO, congruence


def motion_base(mech: Mechanism, q: Vector, qd: Vector, qdd: Vector) -> list[LinkState]:
    """omega, epsilon, v and a of every link in base axes, (4), (5) and after; gravity is not in."""
    out: list[LinkState] = []
    kids = mech.children
    for i, l in enumerate(mech.links):
        f = out[l.parent] if l.parent >= 0 else BASE_STATE
        A_R, A_p = kovalchuk._step(l, q[i])
        turn = f.R.mul(l.M_R)
        R, l_main, z = turn.mul(A_R), turn @ A_p, turn @ UNIT_VECS[l.axis]
        rate = f.w.cross(z * qd[i])
        w = f.w + z * (l.sigma * qd[i])
        e = f.e + (z * qdd[i] + rate) * l.sigma
        slide_v = z * (l.chi * qd[i])
        slide_a = (z * qdd[i] + rate * 2.0) * l.chi
        v0, a0 = kovalchuk._at(out, mech, kids, i)
        arms = [l_main + R @ r for r in kovalchuk._frames(mech, i, kids[i])]
        v = [v0 + w.cross(x) + slide_v for x in (*arms, l_main)]
        a = [a0 + e.cross(x) + w.cross(w.cross(x)) + slide_a for x in (*arms, l_main)]
        arm = R @ l.c
        v_c = v[-1] + w.cross(arm)
        a_c = a[-1] + e.cross(arm) + w.cross(w.cross(arm))
        p = f.p + f.R @ l.M_p + l_main
        out.append(LinkState(A_R, A_p, R, p, z, w, e, arms, l_main, v[:-1], a[:-1], v[-1], a[-1], v_c, a_c))
    return out


def wrenches_base(
    mech: Mechanism, s: Sequence[LinkState], loads: Mapping[int, Load] | None = None
) -> list[Wrench]:
    """f_i and M_i in base axes from the base-axes motion, tips to base."""
    out = [Wrench(ZERO, ZERO)] * len(mech)
    kids = mech.children
    for i in reversed(range(len(mech))):
        l, x, load = mech.links[i], s[i], (loads or {}).get(i, kovalchuk.NO_LOAD)
        J = congruence(x.R, l.J)
        phi = (mech.gravity - x.a_c) * l.m + load.F
        f = phi
        M = kovalchuk._moment_about_com(l, x.R, load) - J @ x.e - x.w.cross(J @ x.w)
        M = M + (x.l_main + x.R @ l.c).cross(phi)
        for k, child in enumerate(kids[i]):
            f = f + out[child].f
            M = M + out[child].M + x.l[k].cross(out[child].f)
        out[i] = Wrench(f, M)
    return out


def efforts_base(
    mech: Mechanism, q: Vector, qd: Vector, qdd: Vector, loads: Mapping[int, Load] | None = None
) -> list[Scalar]:
    """Drive efforts by the recursion in base axes."""
    s = motion_base(mech, q, qd, qdd)
    return kovalchuk.project_wrenches(mech, [x.z for x in s], wrenches_base(mech, s, loads))
