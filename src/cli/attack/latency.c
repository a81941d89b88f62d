#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/attack/attack.h"

#define ROUNDS 200 /* with fewer, the 99th percentile is the single slowest one */

int latency_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double latency_of_sorted(const double *sorted, size_t n, double part)
{
    size_t at = (size_t)((double)n * part);
    return n == 0 ? 0 : sorted[at < n ? at : n - 1];
}

int latency_measure(struct attack *a, const char *box, struct latency *ret)
{
    double took[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        int64_t began = clock_mono_us();
        _cleanup_free_ char *text = talk_exec(a->blue.client, box, NULL, "get", "burn-cpu", NULL);
        if (!text)
            return -EIO;
        took[i] = (double)(clock_mono_us() - began) / 1000;
    }
    qsort(took, ROUNDS, sizeof(took[0]), latency_compare);
    ret->p50_ms = latency_of_sorted(took, ROUNDS, 0.5);
    ret->p99_ms = latency_of_sorted(took, ROUNDS, 0.99);
    return ret->p50_ms > 0 ? 0 : -EIO;
}
