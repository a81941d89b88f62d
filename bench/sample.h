/* sample - measured times of one thing, and their percentiles.
 *
 * Microseconds, kept one by one: a benchmark has thousands, not millions. Percentiles are by
 * nearest rank, so each is a time that was really seen. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct sample {
    double *us;
    size_t n, cap;
};

void sample_add(struct sample *s, double us); /* aborts when memory is out */
void sample_merge(struct sample *s, const struct sample *from);
void sample_sort(struct sample *s);
double sample_percentile(const struct sample *s, double percent); /* sorted; 0 if empty */
void sample_done(struct sample *s);

double now_us(void); /* monotonic */
void pause_ms(unsigned ms);
