#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/attack/attack.h"
#include "cli/listing.h"
#include "cli/object.h"
#include "cli/term.h"

#define STATUS_BROKE 1
#define STATUS_COULD_NOT 2

static const char *verdict_text(enum trial_verdict v)
{
    switch (v) {
    case TRIAL_HELD: return "held";
    case TRIAL_BROKE: return "broke";
    case TRIAL_NOT_HERE: return "not applicable here";
    case TRIAL_ERROR: return "could not run";
    }
    return "?";
}

static const char *verdict_word(enum trial_verdict v)
{
    return v == TRIAL_NOT_HERE ? "not_applicable" : v == TRIAL_ERROR ? "error" : verdict_text(v);
}

void report_begin(struct report *r, bool json, size_t planned)
{
    *r = (struct report){ .json = json,
                          .terminal = isatty(STDERR_FILENO),
                          .attempts = json_array(),
                          .planned = planned };
}

void report_now(struct report *r, const char *name)
{
    if (r->terminal)
        (void)fprintf(stderr, "\r\x1b[K%zu of %zu  %zu held, %zu broke  %s", r->done, r->planned,
                      r->held, r->broke, name);
}

static void count(struct report *r, enum trial_verdict v)
{
    switch (v) {
    case TRIAL_HELD: r->held++; break;
    case TRIAL_BROKE: r->broke++; break;
    case TRIAL_NOT_HERE: r->not_here++; break;
    case TRIAL_ERROR: r->errors++; break;
    }
    r->done++;
}

void report_add(struct report *r, const char *name, const char *category, const char *title,
                const struct trial *t)
{
    json_t *o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "name", name, "category", category, "title",
                          title, "verdict", verdict_word(t->verdict), "why", t->why, "took_ms",
                          (json_int_t)t->took_ms);
    if (!o) /* the program's output is not UTF-8 */
        o = json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "name", name, "category", category, "title",
                      title, "verdict", verdict_word(t->verdict), "why", "(not text)", "took_ms",
                      (json_int_t)t->took_ms);
    if (t->p50 > 0)
        (void)json_object_set_new(o, "neighbour",
                                  json_pack("{s:f,s:f,s:f,s:f}", "p50_ratio", t->p50, "p99_ratio",
                                            t->p99, "p50_ms", t->p50_ms, "p99_ms", t->p99_ms));
    (void)json_array_append_new(r->attempts, o);
    count(r, t->verdict);
}

static void put_neighbour(struct listing *l, const json_t *o)
{
    const json_t *n = json_object_get(o, "neighbour");
    char text[64];
    (void)snprintf(text, sizeof(text), "%.1f / %.1f", member_real(n, "p50_ratio"),
                   member_real(n, "p99_ratio"));
    listing_text(l, n ? text : "");
}

static void print_table(const struct report *r)
{
    static const struct column columns[] = { { "ATTEMPT", false },   { "CATEGORY", false },
                                             { "VERDICT", false },   { "MS", true },
                                             { "NEIGHBOUR", false }, { "WHY", false } };
    static const enum trial_verdict order[] = { TRIAL_HELD, TRIAL_NOT_HERE, TRIAL_ERROR,
                                                TRIAL_BROKE };
    struct listing l;
    size_t i;
    json_t *o;
    listing_init(&l, columns, ARRAY_LEN(columns));
    for (size_t v = 0; v < ARRAY_LEN(order); v++) /* rows that need a person come last, in sight */
        json_array_foreach(r->attempts, i, o) {
            if (strcmp(member_text(o, "verdict"), verdict_word(order[v])) != 0)
                continue;
            listing_text(&l, member_text(o, "name"));
            listing_text(&l, member_text(o, "category"));
            listing_text(&l, verdict_text(order[v]));
            listing_int(&l, member_int(o, "took_ms"));
            put_neighbour(&l, o);
            listing_text(&l, member_text(o, "why"));
        }
    listing_print(&l, stdout, term_width(STDOUT_FILENO));
    listing_done(&l);
    (void)printf("\n%zu held, %zu broke, %zu not applicable here, %zu could not run.\n", r->held,
                 r->broke, r->not_here, r->errors);
    (void)printf(
        "NEIGHBOUR: how much longer another team's exec took meanwhile, as a factor: the median and "
        "the 99th percentile.\n");
}

int report_end(struct report *r)
{
    if (r->terminal)
        (void)fprintf(stderr, "\r\x1b[K");
    if (r->json) {
        _cleanup_json_ json_t *all =
            json_pack("{s:O,s:I,s:I,s:I,s:I}", "attempts", r->attempts, "held", (json_int_t)r->held,
                      "broke", (json_int_t)r->broke, "not_applicable", (json_int_t)r->not_here,
                      "errors", (json_int_t)r->errors);
        cli_print_json(all);
    } else {
        print_table(r);
    }
    json_decref(r->attempts);
    return r->broke ? STATUS_BROKE : r->errors ? STATUS_COULD_NOT : 0;
}
