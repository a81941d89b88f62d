#include "report.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define US_PER_MS 1000.0
#define MIB_KB 1024.0

#define TARGET_COLD 2.0    /* x the floor */
#define TARGET_WARM 1.0    /* x the floor */
#define TARGET_EXEC 1.5    /* x fork + exec + wait */
#define TARGET_DOCKER 40.0 /* times faster than docker run */
#define TARGET_IDLE_MIB 1.5
#define TARGET_PACE 0.7      /* of the floor's lives a second */
#define TARGET_MANY 1.2      /* x a create beside a few */
#define TARGET_E2B 3.0       /* x the floor */
#define TARGET_CODE_MS 150.0 /* from create to a cell's result */

/* One promise: a figure, its bound, and whether it holds. */
struct verdict {
    const char *name, *what;
    double value, bound;
    bool at_least; /* the bound is the least allowed, not the most */
    const char *unit;
    bool known;
};

#define VERDICT_COUNT 12

static double p50(const struct report *r, enum row_id id)
{
    return sample_percentile(&r->rows[id].times, 50);
}

static struct verdict ratio(const struct report *r, const char *name, const char *what,
                            enum row_id a, enum row_id b, double bound, bool at_least)
{
    double x = p50(r, a), y = p50(r, b);
    bool known = x > 0 && y > 0;

    return (struct verdict){ name, what, known ? x / y : 0, bound, at_least, "x", known };
}

static void judge_pace(const struct report *r, struct verdict out[2])
{
    const struct pace *p = &r->pace;
    const struct many *m = &r->many;
    double few = sample_percentile(&m->create_few, 50);

    out[0] = (struct verdict){ "pace_to_floor",
                               "lives a second, to the floor's, 8 at once",
                               p->floors > 0 ? p->ours / p->floors : 0,
                               TARGET_PACE,
                               true,
                               "x",
                               p->clients > 0 && !p->failures };
    out[1] = (struct verdict){ "many_to_few",
                               "create beside 1,000, to one beside 10",
                               few > 0 ? sample_percentile(&m->create_many, 50) / few : 0,
                               TARGET_MANY,
                               false,
                               "x",
                               m->lives > 0 && !m->failures };
}

static void judge_e2b(const struct report *r, struct verdict out[3])
{
    const struct e2b_burst *raw = &r->bursts[BURST_RAW_100], *sdk = &r->bursts[BURST_SDK_100];
    double code = p50(r, ROW_E2B_CODE);

    out[0] = ratio(r, "e2b_to_floor", "E2B's create, run, kill, raw, to the floor", ROW_E2B_RAW,
                   ROW_FLOOR, TARGET_E2B, false);
    out[1] = (struct verdict){ "e2b_failures",
                               "failures of 100 E2B clients at once",
                               raw->failures + sdk->failures,
                               0,
                               false,
                               "",
                               raw->clients > 0 };
    out[2] = (struct verdict){ "e2b_code_ms",
                               "E2B's create to the first result of code",
                               code / US_PER_MS,
                               TARGET_CODE_MS,
                               false,
                               " ms",
                               code > 0 };
}

static void judge(const struct report *r, struct verdict out[VERDICT_COUNT])
{
    bool storm = r->storm.clients > 0, idle = r->idle.wanted > 0;

    out[0] = ratio(r, "cold_to_floor", "create to first output, to the floor", ROW_COLD, ROW_FLOOR,
                   TARGET_COLD, false);
    out[1] = ratio(r, "warm_to_floor", "the same from the warm pool, to the floor", ROW_WARM,
                   ROW_FLOOR, TARGET_WARM, false);
    out[2] = ratio(r, "docker_to_cold", "docker run, to create to first output", ROW_DOCKER,
                   ROW_COLD, TARGET_DOCKER, true);
    out[3] = ratio(r, "exec_to_fork", "exec of true, to fork+exec+wait", ROW_EXEC, ROW_FORK,
                   TARGET_EXEC, false);
    out[4] = (struct verdict){ "idle_mib",
                               "host memory of one idle sandbox",
                               (r->idle.pss_kb + r->idle.kernel_kb) / MIB_KB,
                               TARGET_IDLE_MIB,
                               false,
                               " MiB",
                               idle };
    out[5] = (struct verdict){
        "idle_failures", "failures among the idle ones", r->idle.failures, 0, false, "", idle
    };
    out[6] = (struct verdict){ "storm_failures",
                               "failures and leftovers of the storm",
                               r->storm.failures + r->storm.left_behind,
                               0,
                               false,
                               "",
                               storm };
    judge_e2b(r, out + 7);
    judge_pace(r, out + 10);
}

static bool reached(const struct verdict *v)
{
    return v->at_least ? v->value >= v->bound : v->value <= v->bound;
}

static void times_table(const struct report *r, FILE *out)
{
    double unit = p50(r, ROW_FLOOR);

    fprintf(out, "%-44s %9s %9s %9s %6s %9s\n", "milliseconds", "p50", "p90", "p99", "n",
            "to floor");
    for (int i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &r->rows[i];
        double mid = sample_percentile(&row->times, 50);

        if (row->skipped[0]) {
            fprintf(out, "%-44s skipped: %s\n", row->title, row->skipped);
            continue;
        }
        if (!row->times.n)
            continue;
        fprintf(out, "%-44s %9.2f %9.2f %9.2f %6zu", row->title, mid / US_PER_MS,
                sample_percentile(&row->times, 90) / US_PER_MS,
                sample_percentile(&row->times, 99) / US_PER_MS, row->times.n);
        if (unit > 0)
            fprintf(out, " %8.2fx", mid / unit);
        fputc('\n', out);
    }
}

static void pace_lines(const struct report *r, FILE *out)
{
    const struct pace *p = &r->pace;
    const struct many *m = &r->many;

    if (p->clients)
        fprintf(
            out,
            "\n%u clients: %.0f sandboxes a second made, used and deleted (%.1f ms of processors "
            "each); the floor and its end, %u at once: %.0f a second (%.1f ms)\n",
            p->clients, p->ours, p->our_busy_ms, p->clients, p->floors, p->floor_busy_ms);
    if (p->failures)
        fprintf(out, "  %u failed: %s\n", p->failures, p->first_failure);
    if (m->lives)
        fprintf(out,
                "\na create beside %u sandboxes: p50 %.2f ms, beside %u: %.2f ms (processors, with "
                "its delete: %.1f and %.1f ms); the floor: %.2f and %.2f ms\n",
                m->few, sample_percentile(&m->create_few, 50) / US_PER_MS, m->many,
                sample_percentile(&m->create_many, 50) / US_PER_MS, m->busy_few_ms, m->busy_many_ms,
                sample_percentile(&m->floor_few, 50) / US_PER_MS,
                sample_percentile(&m->floor_many, 50) / US_PER_MS);
    if (m->failures)
        fprintf(out, "  failed: %s\n", m->first_failure);
}

static void crowd_lines(const struct report *r, FILE *out)
{
    const struct crowd_storm *s = &r->storm;
    const struct crowd_idle *i = &r->idle;

    if (s->clients) {
        fprintf(
            out,
            "\n%u clients for %u s: %zu sandboxes made, used and deleted (%.0f a second; a life "
            "p50 %.0f ms, p99 %.0f ms), %u failed, %u left behind\n",
            s->clients, s->seconds, s->life.n, (double)s->life.n / s->seconds,
            sample_percentile(&s->life, 50) / US_PER_MS,
            sample_percentile(&s->life, 99) / US_PER_MS, s->failures, s->left_behind);
        if (s->failures)
            fprintf(out, "  first failure: %s\n", s->first_failure);
        if (s->left_behind)
            fprintf(out, "  left behind: %s\n", s->example);
    }
    if (i->wanted) {
        fprintf(
            out,
            "\n%u idle sandboxes: made in %.1f s, %u answered an exec (p50 %.2f ms), %u failures; "
            "each costs %.2f MiB of processes and %.2f MiB of kernel memory (MemAvailable fell by "
            "%.2f MiB each)\n",
            i->wanted, i->create_s, i->alive, sample_percentile(&i->exec, 50) / US_PER_MS,
            i->failures, i->pss_kb / MIB_KB, i->kernel_kb / MIB_KB, i->available_kb / MIB_KB);
        if (i->failures)
            fprintf(out, "  first failure: %s\n", i->first_failure);
    }
}

static const char *const burst_titles[BURST_COUNT] = {
    [BURST_RAW_10] = "E2B's three calls, raw HTTP, 10 at once",
    [BURST_RAW_100] = "the same, 100 at once",
    [BURST_SDK_10] = "through E2B's client, 10 at once",
    [BURST_SDK_100] = "the same, 100 at once",
};

static void burst_lines(const struct report *r, FILE *out)
{
    for (int i = 0; i < BURST_COUNT; i++) {
        const struct e2b_burst *b = &r->bursts[i];

        if (!b->clients)
            continue;
        fprintf(out, "%-44s %9.2f %9.2f %9.2f %6zu   %u failed\n", burst_titles[i],
                sample_percentile(&b->times, 50) / US_PER_MS,
                sample_percentile(&b->times, 90) / US_PER_MS,
                sample_percentile(&b->times, 99) / US_PER_MS, b->times.n, b->failures);
        if (b->failures)
            fprintf(out, "  first failure: %s\n", b->first_failure);
    }
}

void report_table(const struct report *r, FILE *out)
{
    const struct sample *floor = &r->rows[ROW_FLOOR].times;
    struct verdict v[VERDICT_COUNT];

    fprintf(out, "%s\n\n", r->host);
    times_table(r, out);
    burst_lines(r, out);
    pace_lines(r, out);
    crowd_lines(r, out);
    fprintf(out, "\n%-44s %12s %14s\n", "targets", "measured", "target");
    judge(r, v);
    for (int i = 0; i < VERDICT_COUNT; i++)
        if (v[i].known)
            fprintf(out, "%-44s %*.2f%s %8s %.4g%s  %s\n", v[i].what, (int)(12 - strlen(v[i].unit)),
                    v[i].value, v[i].unit, v[i].at_least ? "at least" : "at most", v[i].bound,
                    v[i].unit, reached(&v[i]) ? "reached" : "NOT REACHED");
    fprintf(out, "\nnoise: load average %.2f before, %.2f after", r->load_before, r->load_after);
    if (floor->n)
        fprintf(out, "; the floor's p90/p50 is %.2f, its p99/p50 %.2f",
                sample_percentile(floor, 90) / sample_percentile(floor, 50),
                sample_percentile(floor, 99) / sample_percentile(floor, 50));
    fputc('\n', out);
}

/* ---- JSON ---- */

static void json_text(FILE *f, const char *text)
{
    fputc('"', f);
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', f);
        if ((unsigned char)*p >= ' ')
            fputc(*p, f);
        else
            fprintf(f, "\\u%04x", *p);
    }
    fputc('"', f);
}

static void json_rows(const struct report *r, FILE *f)
{
    const char *comma = "";

    fputs("  \"times_ms\": {", f);
    for (int i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &r->rows[i];

        if (!row->times.n && !row->skipped[0])
            continue;
        fprintf(f, "%s\n    \"%s\": ", comma, row->name);
        comma = ",";
        if (row->skipped[0]) {
            fputs("{\"skipped\": ", f);
            json_text(f, row->skipped);
            fputc('}', f);
            continue;
        }
        fprintf(f, "{\"p50\": %.4f, \"p90\": %.4f, \"p99\": %.4f, \"n\": %zu}",
                sample_percentile(&row->times, 50) / US_PER_MS,
                sample_percentile(&row->times, 90) / US_PER_MS,
                sample_percentile(&row->times, 99) / US_PER_MS, row->times.n);
    }
    fputs("\n  },\n", f);
}

static void json_crowds(const struct report *r, FILE *f)
{
    const struct crowd_storm *s = &r->storm;
    const struct crowd_idle *i = &r->idle;

    if (s->clients)
        fprintf(f,
                "  \"storm\": {\"clients\": %u, \"seconds\": %u, \"lives\": %zu, \"life_p50_ms\": "
                "%.2f, \"life_p99_ms\": %.2f, \"failures\": %u, \"left_behind\": %u},\n",
                s->clients, s->seconds, s->life.n, sample_percentile(&s->life, 50) / US_PER_MS,
                sample_percentile(&s->life, 99) / US_PER_MS, s->failures, s->left_behind);
    if (i->wanted)
        fprintf(
            f,
            "  \"idle\": {\"wanted\": %u, \"alive\": %u, \"failures\": %u, \"create_s\": %.2f, "
            "\"pss_kib\": %.1f, \"kernel_kib\": %.1f, \"available_kib\": %.1f, \"exec_p50_ms\": "
            "%.3f},\n",
            i->wanted, i->alive, i->failures, i->create_s, i->pss_kb, i->kernel_kb, i->available_kb,
            sample_percentile(&i->exec, 50) / US_PER_MS);
}

static void json_paces(const struct report *r, FILE *f)
{
    const struct pace *p = &r->pace;
    const struct many *m = &r->many;

    if (p->clients)
        fprintf(f,
                "  \"pace\": {\"clients\": %u, \"a_second\": %.2f, \"floors_a_second\": %.2f, "
                "\"busy_ms\": %.2f, \"floor_busy_ms\": %.2f, \"failures\": %u},\n",
                p->clients, p->ours, p->floors, p->our_busy_ms, p->floor_busy_ms, p->failures);
    if (m->lives)
        fprintf(f,
                "  \"many\": {\"few\": %u, \"many\": %u, \"create_few_ms\": %.3f, "
                "\"create_many_ms\": %.3f, \"floor_few_ms\": %.3f, \"floor_many_ms\": %.3f, "
                "\"busy_few_ms\": %.2f, \"busy_many_ms\": %.2f, \"failures\": %u},\n",
                m->few, m->many, sample_percentile(&m->create_few, 50) / US_PER_MS,
                sample_percentile(&m->create_many, 50) / US_PER_MS,
                sample_percentile(&m->floor_few, 50) / US_PER_MS,
                sample_percentile(&m->floor_many, 50) / US_PER_MS, m->busy_few_ms, m->busy_many_ms,
                m->failures);
}

static void json_bursts(const struct report *r, FILE *f)
{
    static const char *const names[BURST_COUNT] = { "raw_10", "raw_100", "sdk_10", "sdk_100" };
    const char *comma = "";

    fputs("  \"e2b_at_once\": {", f);
    for (int i = 0; i < BURST_COUNT; i++) {
        const struct e2b_burst *b = &r->bursts[i];

        if (!b->clients)
            continue;
        fprintf(f, "%s\n    \"%s\": {\"p50\": %.4f, \"p99\": %.4f, \"n\": %zu, \"failures\": %u}",
                comma, names[i], sample_percentile(&b->times, 50) / US_PER_MS,
                sample_percentile(&b->times, 99) / US_PER_MS, b->times.n, b->failures);
        comma = ",";
    }
    fputs("\n  },\n", f);
}

int report_json(const struct report *r, const char *path)
{
    _cleanup_file_ FILE *f = fopen(path, "we");
    struct verdict v[VERDICT_COUNT];
    const char *comma = "";

    if (!f)
        return -errno;
    fputs("{\n  \"host\": ", f);
    json_text(f, r->host);
    fprintf(f, ",\n  \"load_before\": %.2f,\n  \"load_after\": %.2f,\n", r->load_before,
            r->load_after);
    json_rows(r, f);
    json_crowds(r, f);
    json_paces(r, f);
    json_bursts(r, f);
    fputs("  \"targets\": {", f);
    judge(r, v);
    for (int i = 0; i < VERDICT_COUNT; i++) {
        if (!v[i].known)
            continue;
        fprintf(f,
                "%s\n    \"%s\": {\"value\": %.4f, \"bound\": %.4g, \"at_least\": %s, "
                "\"reached\": %s}",
                comma, v[i].name, v[i].value, v[i].bound, v[i].at_least ? "true" : "false",
                reached(&v[i]) ? "true" : "false");
        comma = ",";
    }
    fputs("\n  }\n}\n", f);
    return fflush(f) == 0 ? 0 : -errno;
}
