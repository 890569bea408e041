/* Samples that stand in data.h, one after another; the bits of every result are printed. */
#include <stdio.h>
#include <string.h>
#include "data.h"
static REAL out[OUT];
int main(void)
{
    for (int i = 0; i < N; ++i) {
        CALL;
        for (int k = 0; k < OUT; ++k) { WORD w; memcpy(&w, out + k, sizeof w); printf("%llx\n", (unsigned long long)w); }
    }
    return 0;
}
