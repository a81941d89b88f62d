#include "core/meter.h"

#define GIB (1024.0 * 1024 * 1024)

void meter_start(struct meter *m, int64_t now_ms, uint64_t cpu_us)
{
    if (m->at_ms < now_ms)
        m->at_ms = now_ms;
    m->life_ms = now_ms;
    m->running = true;
    m->asleep = false;
    m->memory_known = false;
    m->memory_bytes = 0;
    m->cpu_us = cpu_us;
}

void meter_stop(struct meter *m)
{
    m->running = m->asleep = false;
}

/* Byte-seconds of dt_ms, in GiB. */
static double integral(bool known, uint64_t before, bool seen, uint64_t now, bool gap,
                       int64_t dt_ms)
{
    double level = 0;
    if (known && (!seen || gap))
        level = (double)before;
    else if (known)
        level = ((double)before + (double)now) / 2;
    else if (seen)
        level = (double)now;
    return level * (double)dt_ms / 1000 / GIB;
}

struct usage_amount meter_advance(struct meter *m, int64_t now_ms,
                                  const struct meter_reading *reading, int64_t gap_ms)
{
    struct usage_amount a = { 0 };
    int64_t dt = now_ms > m->at_ms ? now_ms - m->at_ms : 0; /* the wall clock may be set back */
    bool gap = dt > gap_ms, memory = reading && !reading->dead;
    if (m->running && reading) {
        /* A counter that went back began anew: all of it is new. */
        a.cpu_us = reading->cpu_us >= m->cpu_us ? reading->cpu_us - m->cpu_us : reading->cpu_us;
        m->cpu_us = reading->cpu_us;
    }
    if (m->running && !m->asleep)
        a.memory_gib_s = integral(m->memory_known, m->memory_bytes, memory,
                                  memory ? reading->memory_bytes : 0, gap, dt);
    a.disk_gib_s =
        integral(m->disk_known, m->disk_bytes, reading, reading ? reading->disk_bytes : 0, gap, dt);
    if (memory) {
        m->memory_bytes = reading->memory_bytes;
        m->memory_known = true;
    }
    if (reading) {
        m->disk_bytes = reading->disk_bytes;
        m->disk_known = true;
    }
    m->at_ms += dt;
    return a;
}
