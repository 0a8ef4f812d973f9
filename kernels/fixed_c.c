/* Weighted sums in fixed point, so that processes can add them in any order: the definition. */
#include <errno.h>
#include <math.h>

#include "kernels/variants.h"

#define FIXED_ONE  0x1p40
#define FIXED_MOST 0x1p14 /* so that no sum of 192 of them leaves 63 bits */

int fixed_c_accumulate(int64_t *sum, const float *d, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double product = (double)weight * (double)d[i]; /* exact */
        if (!isfinite(product))
            return -EDOM;
        if (fabs(product) >= FIXED_MOST)
            return -ERANGE;
        sum[i] += (int64_t)rint(product * FIXED_ONE);
    }
    return 0;
}

void fixed_c_settle(float *out, const int64_t *sum, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)sum[i] * (1.0 / FIXED_ONE));
}
