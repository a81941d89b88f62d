#include "cli/batch.h"

#include <errno.h>
#include <string.h>

#include "cli/xmem.h"

/* A request that deletes a sandbox mostly waits for the kernel. More at once than this only queue up. */
#define AT_ONCE 32
#define POLL_MS 1000

struct slot {
    struct request call;
    char *path;
    struct batch_item *item; /* NULL: the slot is free */
};

struct pool {
    struct client *client;
    const struct batch *batch;
    struct slot slots[AT_ONCE];
    size_t busy;
};

static void slot_clear(struct slot *s)
{
    request_done(&s->call);
    free(s->path);
    *s = (struct slot){ .item = NULL };
}

static void slot_begin(struct pool *p, struct slot *s, struct batch_item *item)
{
    s->item = item;
    s->path = p->batch->path(item->name);
    s->call = (struct request){ .method = p->batch->method, .path = s->path };
    item->result = client_start(p->client, &s->call, &item->err);
    if (item->result < 0)
        slot_clear(s);
    else
        p->busy++;
}

static void slot_end(struct pool *p, struct slot *s)
{
    struct batch_item *item = s->item;
    item->result = s->call.result;
    item->err = s->call.err;
    memcpy(item->code, s->call.code, sizeof(item->code));
    item->answer = take_ptr(s->call.json);
    slot_clear(s);
    p->busy--;
}

/* Begin where there is room; *next is the first that was not begun. */
static void begin_more(struct pool *p, struct batch_item *items, size_t n, bool *ended,
                       size_t *next)
{
    for (size_t i = 0; i < AT_ONCE && *next < n; i++) {
        if (p->slots[i].item)
            continue;
        while (*next < n && items[*next].result < 0)
            ended[(*next)++] = true;
        if (*next == n)
            return;
        slot_begin(p, &p->slots[i], &items[*next]);
        ended[*next] = !p->slots[i].item;
        (*next)++;
    }
}

static void take_answers(struct pool *p, const struct batch_item *items, bool *ended)
{
    for (size_t i = 0; i < AT_ONCE; i++) {
        struct slot *s = &p->slots[i];
        if (!s->item || !s->call.done)
            continue;
        ended[s->item - items] = true;
        slot_end(p, s);
    }
}

int batch_run(struct cli *cli, const struct batch *batch, struct batch_item *items, size_t n,
              struct err *err)
{
    struct pool p = { .client = cli_client(cli, err), .batch = batch };
    _cleanup_free_ bool *ended = xcalloc(n, sizeof(*ended));
    size_t next = 0, told = 0;
    int r = 0;
    if (!p.client)
        return err->code ? -err->code : -EIO;
    while (told < n && r >= 0) {
        begin_more(&p, items, n, ended, &next);
        if (p.busy > 0)
            r = client_poll(p.client, NULL, 0, POLL_MS);
        take_answers(&p, items, ended);
        for (; told < n && ended[told]; told++)
            batch->told(&items[told], batch->arg);
    }
    for (size_t i = 0; i < AT_ONCE; i++)
        slot_clear(&p.slots[i]);
    return r < 0 ? err_set(err, -r, "cannot wait for answers") : 0;
}
