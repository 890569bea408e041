/*
 * planar of planar two-link, by Telegin.
 *
 * q: (2,) joint coordinates, rad or m
 * -> H: (2, 2) H: planar, in SI units
 * -> V: () V: planar, in SI units
 * Arrays of double, row-major; what a function writes must not overlap what it reads.
 *
 * Operations: 3 additions, 5 multiplications, 3 sines and cosines, 1 sum of angles, 9 operations on parameters alone.
 * mul: products (a square is one); add: sums and differences (2x = x + x is one); div; trig: sin or
 * cos calls; angle_sums: additions whose result is used inside sin and cos only; hoisted: work on
 * parameters alone, done once per parameter set. Signs, copies, products by 1 or -1 and whole turns
 * off large angles are free.
 *
 * Parameters, in this order:
 *   0: I_1zz = 0.5 kg m², inertia tensor of link1 about its centre of mass, entry zz
 *   1: I_2zz = 0.25 kg m², inertia tensor of link2 about its centre of mass, entry zz
 *   2: L_2 = 0.75 m, distance of the origin of joint2 along x of its parent
 *   3: m_2 = 1.5 kg, mass of link2
 *   4: x_c2 = 0.4 m, centre of mass of link2, x in its own axes
 *
 * Checked: the plain recursion: worst 2.2e-16 over 32 states.
 */

#include <math.h>

/* an angle less whole turns, where it has many: a sum of large angles would keep few of its digits */
static double planar_turned(double x)
{
    const double n = rint(x * 0.15915494309189535);
    if (fabs(n) > 2.0) {
        x -= n * 6.282958984375;
        x -= n * 0.0002263188362121582;
        x -= n * 3.968352757510729e-09;
        x -= n * 2.1560878082915735e-14;
        x -= n * 3.3334971674083515e-19;
    }
    return x;
}

void planar_prologue(const double *parameters, double *constants)
{
    const double I_1zz = parameters[0]; /* inertia tensor of link1 about its centre of mass, entry zz */
    const double I_2zz = parameters[1]; /* inertia tensor of link2 about its centre of mass, entry zz */
    const double L_2 = parameters[2]; /* distance of the origin of joint2 along x of its parent */
    const double m_2 = parameters[3]; /* mass of link2 */
    const double x_c2 = parameters[4]; /* centre of mass of link2, x in its own axes */
    /* regrouped parameters */
    const double d_x2 = m_2*x_c2;
    /* link 2 (link2) */
    const double K1 = L_2*d_x2;
    const double H_22 = I_2zz + x_c2*d_x2;
    const double K2 = L_2*m_2;
    const double K3 = H_22 + I_1zz + L_2*K2;
    const double K4 = 2.0*K1;
    (void)parameters;
    (void)constants;
    constants[0] = d_x2;
    constants[1] = K1;
    constants[2] = H_22;
    constants[3] = K2;
    constants[4] = K3;
    constants[5] = K4;
}

void planar(const double *q, const double *constants, double *out_H, double *out_V)
{
    (void)q;
    (void)constants;
    const double q_1 = planar_turned(q[0]);
    const double q_2 = planar_turned(q[1]);
    const double d_x2 = constants[0];
    const double K1 = constants[1];
    const double H_22 = constants[2];
    const double K2 = constants[3];
    const double K3 = constants[4];
    const double K4 = constants[5];
    /* link 2 (link2) */
    const double c_2 = cos(q_2);
    const double m_22_e = K1*c_2;  /* = m_e */
    const double H_21 = m_22_e + H_22;
    const double H_11 = K3 + K4*c_2;
    const double s_12 = sin(q_1 + q_2);
    const double s_1 = sin(q_1);
    const double V = 9.81*(d_x2*s_12 + K2*s_1);
    out_H[0] = H_11;
    out_H[1] = H_21;
    out_H[2] = H_21;
    out_H[3] = H_22;
    out_V[0] = V;
}
