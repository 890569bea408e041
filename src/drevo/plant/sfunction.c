
/* --- a level-2 S-function of Simulink: torques in; q, v and, of a controller inside, its torques out -------------- */

#define S_FUNCTION_LEVEL 2
#include "simstruc.h"

enum { OF_PARAMETERS, OF_START, DIALOG }; /* the block's parameters: [] for the robot's own numbers */

static void mdlInitializeSizes(SimStruct *S)
{
    ssSetNumSFcnParams(S, DIALOG);
    if (ssGetNumSFcnParams(S) != ssGetSFcnParamsCount(S)) return; /* Simulink says what is wrong */
    if (mxGetNumberOfElements(ssGetSFcnParam(S, OF_PARAMETERS)) % (NP + !NP) ||
        mxGetNumberOfElements(ssGetSFcnParam(S, OF_PARAMETERS)) > NP) {
        ssSetErrorStatus(S, "the first parameter is [] or one number for each parameter of the robot");
        return;
    }
    if (mxGetNumberOfElements(ssGetSFcnParam(S, OF_START)) % NX ||
        mxGetNumberOfElements(ssGetSFcnParam(S, OF_START)) > NX) {
        ssSetErrorStatus(S, "the second parameter is [] or the state at the start: q, then v");
        return;
    }
    ssSetNumContStates(S, NX);
    ssSetNumDiscStates(S, 0);
    if (!ssSetNumInputPorts(S, 1)) return;
    ssSetInputPortWidth(S, 0, NU);
    ssSetInputPortRequiredContiguous(S, 0, 1);
    ssSetInputPortDirectFeedThrough(S, 0, 0);
    if (!ssSetNumOutputPorts(S, NY ? 3 : 2)) return;
    ssSetOutputPortWidth(S, 0, NQ);
    ssSetOutputPortWidth(S, 1, NX - NQ);
    if (NY) ssSetOutputPortWidth(S, 2, NY);
    ssSetNumSampleTimes(S, 1);
    ssSetNumRWork(S, NK + 1);
    ssSetOptions(S, SS_OPTION_EXCEPTION_FREE_CODE);
}

static void mdlInitializeSampleTimes(SimStruct *S)
{
    ssSetSampleTime(S, 0, CONTINUOUS_SAMPLE_TIME);
    ssSetOffsetTime(S, 0, 0.0);
}

/* The numbers of one of the block's parameters, or the robot's own. */
static const double *given(SimStruct *S, int which, const double *own)
{
    return mxGetNumberOfElements(ssGetSFcnParam(S, which)) ? mxGetPr(ssGetSFcnParam(S, which)) : own;
}

#define MDL_INITIALIZE_CONDITIONS
static void mdlInitializeConditions(SimStruct *S)
{
    const double *own = VALUE_AT_START + 1 + NU;
    memcpy(ssGetContStates(S), given(S, OF_START, own), NX * sizeof(double));
    constants_of(given(S, OF_PARAMETERS, own + 2 * NX + NY), ssGetRWork(S));
}

static void mdlOutputs(SimStruct *S, int_T tid)
{
    const double *x = ssGetContStates(S);
    (void)tid;
    memcpy(ssGetOutputPortRealSignal(S, 0), x, NQ * sizeof(double));
    memcpy(ssGetOutputPortRealSignal(S, 1), x + NQ, (NX - NQ) * sizeof(double));
    if (NY) controller(ssGetT(S), x, ssGetOutputPortRealSignal(S, 2));
}

#define MDL_DERIVATIVES
static void mdlDerivatives(SimStruct *S)
{
    double control[NY + 1];
    plant(ssGetT(S), ssGetContStates(S), ssGetInputPortRealSignal(S, 0), ssGetRWork(S), ssGetdX(S), control);
}

static void mdlTerminate(SimStruct *S) { (void)S; }

#ifdef MATLAB_MEX_FILE
#include "simulink.c"
#else
#include "cg_sfun.h"
#endif
