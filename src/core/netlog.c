#include "core/netlog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16

/* It grows while it is not full, so that nothing has to be moved around a corner. */
static int grow(struct netlog *l)
{
    size_t room = l->room ? 2 * l->room : ROOM_FIRST;
    struct network_entry *more = reallocarray(l->items, room, sizeof(*more));
    if (!more)
        return -ENOMEM;
    l->items = more;
    l->room = room;
    return 0;
}

void netlog_add(struct netlog *l, const struct broker_record *rec)
{
    if (l->count == l->room && l->room < NETWORK_LOG_MAX && grow(l) < 0)
        return;
    struct network_entry *e = &l->items[l->count % l->room];
    l->count++;
    *e = (struct network_entry){ l->count, *rec };
}

int netlog_copy(const struct netlog *l, uint64_t after, struct network_entry **ret_items,
                size_t *ret_n)
{
    uint64_t first = l->count > l->room ? l->count - l->room : 0; /* lost before this */
    uint64_t from = after > first ? after : first;
    size_t n = from < l->count ? (size_t)(l->count - from) : 0;
    struct network_entry *items = calloc(n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        items[i] = l->items[(from + i) % l->room];
    *ret_items = items;
    *ret_n = n;
    return 0;
}

void netlog_done(struct netlog *l)
{
    free(l->items);
    *l = (struct netlog){ .items = NULL };
}
