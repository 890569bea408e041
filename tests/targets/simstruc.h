/* What Drevo's S-functions use of Simulink's header, over plain arrays: for tests where there is no MATLAB. */
#include <stddef.h>

typedef int int_T;
typedef struct { size_t n; const double *values; } mxArray;
typedef struct {
    int expected, states, input, outputs, width[3], work, continuous, feedthrough;
    const char *error;
    mxArray *parameter[2];
    double t, x[64], dx[64], u[64], y[3][64], r[4096];
} SimStruct;

#define CONTINUOUS_SAMPLE_TIME 0.0
#define SS_OPTION_EXCEPTION_FREE_CODE 1
#define mxGetNumberOfElements(a) ((a)->n)
#define mxGetPr(a) ((double *)(a)->values)
#define ssSetNumSFcnParams(S, n) ((S)->expected = (n))
#define ssGetNumSFcnParams(S) ((S)->expected)
#define ssGetSFcnParamsCount(S) 2
#define ssGetSFcnParam(S, k) ((S)->parameter[k])
#define ssSetErrorStatus(S, text) ((S)->error = (text))
#define ssSetNumContStates(S, n) ((S)->states = (n))
#define ssSetNumDiscStates(S, n) ((void)(n))
#define ssSetNumInputPorts(S, n) (n)
#define ssSetInputPortWidth(S, port, n) ((S)->input = (n))
#define ssSetInputPortRequiredContiguous(S, port, is) ((void)(is))
#define ssSetInputPortDirectFeedThrough(S, port, is) ((S)->feedthrough = (is))
#define ssSetNumOutputPorts(S, n) ((S)->outputs = (n))
#define ssSetOutputPortWidth(S, port, n) ((S)->width[port] = (n))
#define ssSetNumSampleTimes(S, n) ((void)(n))
#define ssSetNumRWork(S, n) ((S)->work = (n))
#define ssSetOptions(S, options) ((void)(options))
#define ssSetSampleTime(S, k, time) ((S)->continuous = (time) == CONTINUOUS_SAMPLE_TIME)
#define ssSetOffsetTime(S, k, time) ((void)(time))
#define ssGetContStates(S) ((S)->x)
#define ssGetdX(S) ((S)->dx)
#define ssGetRWork(S) ((S)->r)
#define ssGetT(S) ((S)->t)
#define ssGetInputPortRealSignal(S, port) ((const double *)(S)->u)
#define ssGetOutputPortRealSignal(S, port) ((S)->y[port])
