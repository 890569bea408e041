
/* --- FMI 3.0, for model exchange and for co-simulation by the classical method of Runge and Kutta ---------------- */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { OK, WARNING, DISCARD, ERROR };
typedef void (*LogMessage)(void *environment, int status, const char *category, const char *message);
typedef uint32_t Reference;

/* Where the variables stand: a value reference is a place in `value`. */
enum {
    INPUT = 1, STATE = INPUT + NU, RATE = STATE + NX, CONTROL = RATE + NX, PARAMETER = CONTROL + NY,
    STEP = PARAMETER + NP, VALUES
};

typedef struct {
    double value[VALUES], constants[NK + 1];
    bool stale, exchange, logging;
    void *environment;
    LogMessage log;
} Robot;

static int fail(const Robot *r, const char *message)
{
    if (r->log && r->logging) r->log(r->environment, ERROR, "logStatusError", message);
    return ERROR;
}

/* The derivatives and the torques of the controller, of values that have changed. */
static int evaluate(Robot *r)
{
    double *x = r->value;
    if (!r->stale) return OK;
    plant(x[0], x + STATE, x + INPUT, r->constants, x + RATE, x + CONTROL);
    r->stale = false;
    for (int k = RATE; k < PARAMETER; ++k)
        if (!isfinite(x[k])) return fail(r, "a derivative is not finite: check parameters, inputs and the step");
    return OK;
}

static void start(Robot *r)
{
    memcpy(r->value, VALUE_AT_START, sizeof r->value);
    constants_of(r->value + PARAMETER, r->constants);
    r->stale = true;
}

static Robot *instance(const char *token, bool logging, void *environment, LogMessage log, bool exchange)
{
    Robot *r = strcmp(token, TOKEN) ? NULL : calloc(1, sizeof *r);
    if (!r) return NULL;
    r->logging = logging, r->environment = environment, r->log = log, r->exchange = exchange;
    start(r);
    return r;
}

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }

EXPORT int fmi3SetDebugLogging(Robot *r, bool on, size_t n, const char *const categories[])
{
    (void)n, (void)categories;
    r->logging = on;
    return OK;
}

EXPORT Robot *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, bool visible,
    bool logging, void *environment, LogMessage log)
{
    (void)name, (void)resources, (void)visible;
    return instance(token, logging, environment, log, true);
}

EXPORT Robot *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, bool visible,
    bool logging, bool events, bool early, const Reference required[], size_t n, void *environment, LogMessage log,
    void *update)
{
    (void)name, (void)resources, (void)visible, (void)events, (void)early, (void)required, (void)n, (void)update;
    return instance(token, logging, environment, log, false);
}

EXPORT void fmi3FreeInstance(Robot *r) { free(r); }

EXPORT int fmi3EnterInitializationMode(Robot *r, bool defined, double tolerance, double time, bool ends, double end)
{
    (void)defined, (void)tolerance, (void)ends, (void)end;
    r->value[0] = time, r->stale = true;
    return OK;
}

EXPORT int fmi3Reset(Robot *r)
{
    start(r);
    return OK;
}

EXPORT int fmi3GetFloat64(Robot *r, const Reference at[], size_t n, double values[], size_t count)
{
    int status = OK;
    if (n != count) return fail(r, "every variable has one value");
    for (size_t k = 0; k < n; ++k) {
        if (at[k] >= VALUES) return fail(r, "there is no variable of that reference");
        if (at[k] >= RATE && at[k] < PARAMETER) status = evaluate(r);
        values[k] = r->value[at[k]];
    }
    return status;
}

EXPORT int fmi3SetFloat64(Robot *r, const Reference at[], size_t n, const double values[], size_t count)
{
    if (n != count) return fail(r, "every variable has one value");
    for (size_t k = 0; k < n; ++k) {
        bool computed = at[k] == 0 || (at[k] >= RATE && at[k] < PARAMETER);
        if (at[k] >= VALUES || computed) return fail(r, "no variable of that reference can be set");
        if (!isfinite(values[k])) return fail(r, "a value is not finite");
        if (at[k] == STEP && values[k] <= 0.0) return fail(r, "the step is a time above 0");
        r->value[at[k]] = values[k];
    }
    constants_of(r->value + PARAMETER, r->constants);
    r->stale = true;
    return OK;
}

EXPORT int fmi3UpdateDiscreteStates(Robot *r, bool *again, bool *terminate, bool *nominals, bool *values, bool *timed,
    double *next)
{
    (void)r;
    *again = *terminate = *nominals = *values = *timed = false;
    *next = 0.0;
    return OK;
}

EXPORT int fmi3CompletedIntegratorStep(Robot *r, bool final, bool *event, bool *terminate)
{
    (void)r, (void)final;
    *event = *terminate = false;
    return OK;
}

EXPORT int fmi3SetTime(Robot *r, double time)
{
    r->value[0] = time, r->stale = true;
    return OK;
}

EXPORT int fmi3SetContinuousStates(Robot *r, const double x[], size_t n)
{
    if (n != NX) return fail(r, "the number of states is another");
    memcpy(r->value + STATE, x, NX * sizeof *x);
    r->stale = true;
    return OK;
}

EXPORT int fmi3GetContinuousStates(Robot *r, double x[], size_t n)
{
    if (n != NX) return fail(r, "the number of states is another");
    memcpy(x, r->value + STATE, NX * sizeof *x);
    return OK;
}

EXPORT int fmi3GetContinuousStateDerivatives(Robot *r, double dx[], size_t n)
{
    int status = n == NX ? evaluate(r) : fail(r, "the number of states is another");
    if (n == NX) memcpy(dx, r->value + RATE, NX * sizeof *dx);
    return status;
}

EXPORT int fmi3GetNominalsOfContinuousStates(Robot *r, double nominals[], size_t n)
{
    (void)r;
    for (size_t k = 0; k < n; ++k) nominals[k] = 1.0;
    return OK;
}

EXPORT int fmi3GetNumberOfContinuousStates(Robot *r, size_t *n)
{
    (void)r;
    *n = NX;
    return OK;
}

EXPORT int fmi3GetNumberOfEventIndicators(Robot *r, size_t *n)
{
    (void)r;
    *n = 0;
    return OK;
}

EXPORT int fmi3GetEventIndicators(Robot *r, double z[], size_t n)
{
    (void)z;
    return n ? fail(r, "there are no event indicators") : OK;
}

EXPORT int fmi3DoStep(Robot *r, double time, double length, bool final, bool *event, bool *terminate, bool *early,
    double *last)
{
    static const double PART[] = {0.0, 0.5, 0.5, 1.0}, WEIGHT[] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};
    double *v = r->value, *x = v + STATE, begin[NX], sum[NX];
    long steps = (long)ceil(length / v[STEP] * (1.0 - 1e-9));
    double h = length / (double)(steps < 1 ? 1 : steps);
    (void)final;
    *event = *terminate = *early = false;
    for (long s = 0; s < steps; ++s) {
        memcpy(begin, x, sizeof begin);
        for (int i = 0; i < 4; ++i) { /* k_i of the paper: the derivatives at begin + PART h k of the stage before */
            for (int k = 0; k < NX && i > 0; ++k) x[k] = begin[k] + PART[i] * h * v[RATE + k];
            v[0] = time + ((double)s + PART[i]) * h, r->stale = true;
            if (evaluate(r) != OK) return ERROR;
            for (int k = 0; k < NX; ++k) sum[k] = (i ? sum[k] : 0.0) + WEIGHT[i] * v[RATE + k];
        }
        for (int k = 0; k < NX; ++k) x[k] = begin[k] + h * sum[k];
        unit(x);
    }
    *last = v[0] = time + length;
    r->stale = true;
    return OK;
}

/* A state that is kept is a copy of all. */
EXPORT int fmi3GetFMUState(Robot *r, Robot **state)
{
    if (!*state) *state = malloc(sizeof *r);
    if (!*state) return fail(r, "there is not enough memory");
    **state = *r;
    return OK;
}

EXPORT int fmi3SetFMUState(Robot *r, const Robot *state)
{
    memcpy(r->value, state->value, sizeof r->value);
    memcpy(r->constants, state->constants, sizeof r->constants);
    r->stale = true;
    return OK;
}

EXPORT int fmi3FreeFMUState(Robot *r, Robot **state)
{
    (void)r;
    free(*state);
    *state = NULL;
    return OK;
}

EXPORT int fmi3SerializedFMUStateSize(Robot *r, const Robot *state, size_t *size)
{
    (void)state;
    *size = sizeof r->value;
    return OK;
}

EXPORT int fmi3SerializeFMUState(Robot *r, const Robot *state, uint8_t bytes[], size_t size)
{
    if (size != sizeof r->value) return fail(r, "the size of a state is another");
    memcpy(bytes, state->value, size);
    return OK;
}

EXPORT int fmi3DeserializeFMUState(Robot *r, const uint8_t bytes[], size_t size, Robot **state)
{
    if (size != sizeof r->value) return fail(r, "the size of a state is another");
    if (fmi3GetFMUState(r, state) != OK) return ERROR;
    memcpy((*state)->value, bytes, size);
    constants_of((*state)->value + PARAMETER, (*state)->constants);
    return OK;
}

/* Changes of mode, for which nothing has to be done. */
#define MODE(name) EXPORT int fmi3##name(Robot *r) { (void)r; return OK; }
MODE(ExitInitializationMode)
MODE(EnterEventMode)
MODE(EnterContinuousTimeMode)
MODE(EnterStepMode)
MODE(EnterConfigurationMode)
MODE(ExitConfigurationMode)
MODE(EvaluateDiscreteStates)
MODE(Terminate)

/* The robot has real numbers only, no clocks and no partitions. */
#define OF_TYPE(T, type) \
    EXPORT int fmi3Get##T(Robot *r, const Reference at[], size_t n, type values[], size_t count) \
    { (void)at, (void)values, (void)count; return n ? fail(r, "no variable is of that type") : OK; } \
    EXPORT int fmi3Set##T(Robot *r, const Reference at[], size_t n, const type values[], size_t count) \
    { (void)at, (void)values, (void)count; return n ? fail(r, "no variable is of that type") : OK; }
OF_TYPE(Float32, float)
OF_TYPE(Int8, int8_t)
OF_TYPE(UInt8, uint8_t)
OF_TYPE(Int16, int16_t)
OF_TYPE(UInt16, uint16_t)
OF_TYPE(Int32, int32_t)
OF_TYPE(UInt32, uint32_t)
OF_TYPE(Int64, int64_t)
OF_TYPE(UInt64, uint64_t)
OF_TYPE(Boolean, bool)
OF_TYPE(String, char *const)

#define ABSENT(name) EXPORT int fmi3##name(Robot *r) { return fail(r, "fmi3" #name ": not provided"); }
ABSENT(GetBinary)
ABSENT(SetBinary)
ABSENT(GetClock)
ABSENT(SetClock)
ABSENT(GetNumberOfVariableDependencies)
ABSENT(GetVariableDependencies)
ABSENT(GetDirectionalDerivative)
ABSENT(GetAdjointDerivative)
ABSENT(GetIntervalDecimal)
ABSENT(GetIntervalFraction)
ABSENT(GetShiftDecimal)
ABSENT(GetShiftFraction)
ABSENT(SetIntervalDecimal)
ABSENT(SetIntervalFraction)
ABSENT(SetShiftDecimal)
ABSENT(SetShiftFraction)
ABSENT(GetOutputDerivatives)
ABSENT(ActivateModelPartition)

EXPORT Robot *fmi3InstantiateScheduledExecution(void) { return NULL; }
