#include "core/usage.h"

#include <errno.h>
#include <string.h>

#include "core/count.h"

#define HOUR_MS (3600 * 1000ll)

struct gather {
    struct usage_row *items;
    size_t n, max;
};

static struct usage_amount amount_of(const struct store_usage *row)
{
    return (struct usage_amount){ .cpu_us = (uint64_t)row->cpu_us,
                                  .memory_gib_s = row->memory_gib_s,
                                  .disk_gib_s = row->disk_gib_s,
                                  .rx_bytes = (uint64_t)row->rx_bytes,
                                  .tx_bytes = (uint64_t)row->tx_bytes };
}

static int take_total(void *ctx, const struct store_usage *row)
{
    *(struct usage_amount *)ctx = amount_of(row);
    return 0;
}

static int take_row(void *ctx, const struct store_usage *row)
{
    struct gather *g = ctx;
    if (g->n == g->max)
        return 1;
    struct usage_row *items = reallocarray(g->items, g->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    g->items = items;
    struct usage_row *at = &g->items[g->n];
    *at = (struct usage_row){ .from_ms = row->hour * HOUR_MS, .amount = amount_of(row) };
    if (row->sandbox)
        (void)snprintf(at->sandbox, sizeof(at->sandbox), "%s", row->sandbox);
    if (row->name && !(at->name = strdup(row->name)))
        return -ENOMEM;
    g->n++;
    return 0;
}

int usage_read(struct core *core, const struct usage_query *query, struct usage_report *ret_report,
               struct err *err)
{
    struct store_usage_query q = { .owner = query->owner,
                                   .sandbox = query->sandbox,
                                   .from_hour = query->from_ms / HOUR_MS,
                                   .to_hour = query->to_ms / HOUR_MS };
    struct gather sandboxes = { .max = query->limit }, steps = { .max = SIZE_MAX };
    struct usage_report report = { 0 };
    int r = usage_flush(core, err);
    if (r >= 0)
        r = store_usage_total(core->store, &q, take_total, &report.total, err);
    if (r >= 0)
        r = store_usage_sandboxes(core->store, &q, query->after ? query->after : "", query->limit,
                                  take_row, &sandboxes, err);
    if (r >= 0 && query->step_hours)
        r = store_usage_steps(core->store, &q, query->step_hours, take_row, &steps, err);
    report.sandboxes = sandboxes.items;
    report.n_sandboxes = sandboxes.n;
    report.steps = steps.items;
    report.n_steps = steps.n;
    if (r < 0) {
        usage_report_done(&report);
        return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the usage") : r;
    }
    *ret_report = report;
    return 0;
}

void usage_report_done(struct usage_report *report)
{
    for (size_t i = 0; i < report->n_sandboxes; i++)
        free(report->sandboxes[i].name);
    free(report->sandboxes);
    free(report->steps);
    *report = (struct usage_report){ 0 };
}
