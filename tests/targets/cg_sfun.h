/* One evaluation of an S-function: u on stdin; sizes, then outputs and derivatives on stdout. */
#include <stdio.h>

int main(int argc, char **argv)
{
    static SimStruct s;
    static double mass[64];
    mxArray parameters = {0, mass}, start = {0, NULL};
    (void)argc;
    if (argv[1][0] == '2') { /* twice the masses */
        parameters.n = NP;
        for (int k = 0; k < NP; ++k) mass[k] = 2.0 * VALUE_AT_START[1 + NU + 2 * NX + NY + k];
    }
    if (argv[1][0] == 'x') start.n = NX + 1;
    s.parameter[0] = &parameters, s.parameter[1] = &start;
    mdlInitializeSizes(&s);
    if (s.error) { puts(s.error); return 1; }
    mdlInitializeSampleTimes(&s);
    mdlInitializeConditions(&s);
    for (int k = 0; k < s.input; ++k) if (scanf("%lf", &s.u[k]) != 1) return 2;
    mdlOutputs(&s, 0);
    mdlDerivatives(&s);
    printf("%d %d %d %d %d\n", s.states, s.input, s.outputs, s.continuous, s.feedthrough);
    for (int p = 0; p < s.outputs; ++p) for (int k = 0; k < s.width[p]; ++k) printf("%.17g\n", s.y[p][k]);
    for (int k = 0; k < s.states; ++k) printf("%.17g\n", s.dx[k]);
    mdlTerminate(&s);
    return 0;
}
