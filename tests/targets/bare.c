/* The same on a Cortex-M without any library: semihosting prints (ARM DUI 0471, chapter 8). */
#include "data.h"
static REAL out[OUT];
static int ask(int op, const void *x)
{
    register int r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = x;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
static void put(WORD w)
{
    char s[20];
    int n = 2 * sizeof w;
    s[n] = '\n';
    s[n + 1] = 0;
    while (n--) { s[n] = "0123456789abcdef"[w & 15]; w >>= 4; }
    ask(4, s);
}
static void reset(void)
{
    *(volatile unsigned *)0xE000ED88 |= 0xf << 20; /* the floating-point unit on */
    __asm__ volatile("dsb; isb");
    for (int i = 0; i < N; ++i) {
        CALL;
        for (int k = 0; k < OUT; ++k) { union { REAL x; WORD w; } u = {out[k]}; put(u.w); }
    }
    ask(0x18, (void *)0x20026);
}
__attribute__((section(".vectors"), used)) void *vectors[] = {(void *)STACK, reset};
