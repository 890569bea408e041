/* A controller and the robot that it holds on a Cortex-M without any library: the state is printed as it goes on. */
#include "data.h"
static REAL q[NV], v[NV], tau[NV], a[NV];
static int ask(int op, const void *x)
{
    register int r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = x;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static void put(REAL x)
{
    union { REAL x; unsigned w; } u = {x};
    char s[10];
    s[8] = '\n';
    s[9] = 0;
    for (int n = 8; n--; u.w >>= 4) s[n] = "0123456789abcdef"[u.w & 15];
    ask(4, s);
}
__attribute__((noinline)) static void run(void)
{
    static const REAL start[] = START;
    REAL t = 0;
    for (int i = 0; i < NV; ++i) { q[i] = start[i]; v[i] = 0; }
    for (int k = 0; k < COUNT; ++k) {
        LAW(&t, q, v, tau);
        for (int j = 0; j < INNER; ++j) { /* half a kick, a drift, half a kick */
            PLANT(q, v, tau, a);
            for (int i = 0; i < NV; ++i) { v[i] += (REAL)0.5 * STEP * a[i]; q[i] += STEP * v[i]; }
            PLANT(q, v, tau, a);
            for (int i = 0; i < NV; ++i) v[i] += (REAL)0.5 * STEP * a[i];
        }
        t += STEP * INNER;
        if (k % (COUNT / 60) == 0) for (int i = 0; i < NV; ++i) put(q[i]);
    }
    for (int i = 0; i < NV; ++i) put(q[i]);
    ask(0x18, (void *)0x20026);
}
static void reset(void)
{
    *(volatile unsigned *)0xE000ED88 |= 0xf << 20; /* the floating-point unit on, before anything saves its registers */
    __asm__ volatile("dsb; isb");
    run();
}
__attribute__((section(".vectors"), used)) void *vectors[] = {(void *)STACK, reset};
