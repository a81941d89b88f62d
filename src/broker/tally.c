#include "broker/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define TELL_MS 1000

static void on_deadline(struct deadline *d);

static struct tally_row **bucket(struct tally *t, const char *sandbox)
{
    return &t->buckets[hash_text(sandbox) % TALLY_BUCKETS];
}

void tally_init(struct tally *t, struct loop *loop,
                int (*send)(void *arg, const struct tally_row *row), void *arg)
{
    *t = (struct tally){ .loop = loop, .send = send, .arg = arg };
}

static void add(struct tally_row *to, const struct tally_row *row)
{
    to->connections += row->connections;
    to->denied += row->denied;
    to->sent_bytes += row->sent_bytes;
    to->received_bytes += row->received_bytes;
}

/* The row that this belongs to; with `host` "" where there is no room for another. */
static struct tally_row *find(struct tally *t, const struct tally_row *like, const char *host,
                              size_t *ret_n)
{
    *ret_n = 0;
    for (struct tally_row *r = *bucket(t, like->sandbox); r; r = r->next) {
        if (r->kind != like->kind || strcmp(r->sandbox, like->sandbox) != 0)
            continue;
        if (strcmp(r->host, host) == 0 && strcmp(r->binding, like->binding) == 0)
            return r;
        ++*ret_n;
    }
    return NULL;
}

void tally_add(struct tally *t, const struct tally_row *row)
{
    size_t n;
    struct tally_row *r = find(t, row, row->host, &n);
    bool full = !r && n >= TALLY_ROWS_OF_ONE && row->kind != TALLY_USE;
    if (full)
        r = find(t, row, "", &n);
    if (!r) {
        r = malloc(sizeof(*r));
        if (!r)
            return;
        *r = *row;
        if (full)
            r->host[0] = '\0';
        struct tally_row **at = bucket(t, row->sandbox);
        r->next = *at;
        *at = r;
    } else {
        add(r, row);
    }
    if (!t->deadline.at)
        loop_deadline(t->loop, &t->deadline, clock_mono_ms() + TELL_MS, on_deadline);
}

/* Those that are taken leave the list. */
static void send_list(struct tally *t, struct tally_row **at, const char *sandbox)
{
    while (*at) {
        struct tally_row *r = *at;
        if ((sandbox && strcmp(r->sandbox, sandbox) != 0) || t->send(t->arg, r) < 0) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        free(r);
    }
}

void tally_send(struct tally *t, const char *sandbox)
{
    if (sandbox) {
        send_list(t, bucket(t, sandbox), sandbox);
        return;
    }
    for (size_t i = 0; i < TALLY_BUCKETS; i++)
        send_list(t, &t->buckets[i], NULL);
}

static void on_deadline(struct deadline *d)
{
    struct tally *t = container_of(d, struct tally, deadline);
    tally_send(t, NULL);
    for (size_t i = 0; i < TALLY_BUCKETS; i++)
        if (t->buckets[i]) {
            loop_deadline(t->loop, d, clock_mono_ms() + TELL_MS, on_deadline);
            return;
        }
}

void tally_done(struct tally *t)
{
    tally_send(t, NULL);
    loop_no_deadline(t->loop, &t->deadline);
    for (size_t i = 0; i < TALLY_BUCKETS; i++)
        while (t->buckets[i]) {
            struct tally_row *r = t->buckets[i];
            t->buckets[i] = r->next;
            free(r);
        }
}
