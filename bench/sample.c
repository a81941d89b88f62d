#include "sample.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLE_FIRST_CAP 256

void sample_add(struct sample *s, double us)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : SAMPLE_FIRST_CAP;
        double *grown = realloc(s->us, cap * sizeof(*grown));

        if (!grown)
            abort();
        s->us = grown;
        s->cap = cap;
    }
    s->us[s->n++] = us;
}

void sample_merge(struct sample *s, const struct sample *from)
{
    for (size_t i = 0; i < from->n; i++)
        sample_add(s, from->us[i]);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void sample_sort(struct sample *s)
{
    if (s->n)
        qsort(s->us, s->n, sizeof(*s->us), compare);
}

double sample_percentile(const struct sample *s, double percent)
{
    size_t rank;

    if (!s->n)
        return 0;
    rank = (size_t)ceil(percent / 100 * (double)s->n);
    return s->us[rank ? rank - 1 : 0];
}

void sample_done(struct sample *s)
{
    free(s->us);
    *s = (struct sample){ 0 };
}

double now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

void pause_ms(unsigned ms)
{
    struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

    while (nanosleep(&t, &t) < 0)
        ;
}
