#include "core/samples.h"

#include <errno.h>
#include <stdlib.h>

#include "core/count.h"
#include "core/table.h"

void samples_add(struct samples *s, const struct sample *one)
{
    struct sample *last = s->n ? &s->items[(s->head + s->n - 1) % s->room] : NULL;
    if (last && one->at_ms - last->at_ms < SAMPLE_MIN_MS) {
        last->cpu_us += one->cpu_us;
        last->span_ms += one->span_ms;
        last->at_ms = one->at_ms;
        last->memory_bytes = one->memory_bytes;
        last->disk_bytes = one->disk_bytes;
        return;
    }
    if (s->n == s->room && s->room < SAMPLES_MAX) { /* not full yet: head is 0 */
        size_t room = s->room ? s->room * 2 : 8;
        if (room > SAMPLES_MAX)
            room = SAMPLES_MAX;
        struct sample *items = reallocarray(s->items, room, sizeof(*items));
        if (!items)
            return;
        s->items = items;
        s->room = room;
    }
    s->items[(s->head + s->n) % s->room] = *one;
    if (s->n < s->room)
        s->n++;
    else
        s->head = (s->head + 1) % s->room;
}

const struct sample *samples_at(const struct samples *s, size_t i)
{
    return &s->items[(s->head + i) % s->room];
}

void samples_done(struct samples *s)
{
    free(s->items);
    *s = (struct samples){ 0 };
}

int sandbox_samples(struct core *core, const char *owner, const char *who, int64_t from_ms,
                    int64_t to_ms, struct sample **ret_items, size_t *ret_n, struct err *err)
{
    struct sandbox s = { 0 };
    int r = sandbox_get(core, owner, who, &s, err);
    char id[ID_SIZE];
    memcpy(id, s.id, sizeof(id));
    sandbox_done(&s);
    if (r < 0)
        return r;
    usage_look(core, id);

    struct sample *items = calloc(SAMPLES_MAX, sizeof(*items));
    size_t n = 0;
    if (!items)
        return err_set(err, ENOMEM, "cannot allocate samples");
    (void)pthread_mutex_lock(&core->table.lock);
    const struct box *b = box_find(&core->table, owner, id);
    for (size_t i = 0; b && i < b->samples.n; i++) {
        const struct sample *one = samples_at(&b->samples, i);
        if (one->at_ms >= from_ms && one->at_ms <= to_ms)
            items[n++] = *one;
    }
    (void)pthread_mutex_unlock(&core->table.lock);
    *ret_items = items;
    *ret_n = n;
    return 0;
}
