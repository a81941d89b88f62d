#include "broker/own.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define FRESH_MS 2000
#define ROOM_FIRST 64

static int add(struct own *o, const struct range *r)
{
    if (o->n == o->room) {
        size_t room = o->room ? 2 * o->room : ROOM_FIRST;
        struct range *more = reallocarray(o->ranges, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        o->ranges = more;
        o->room = room;
    }
    o->ranges[o->n++] = *r;
    return 0;
}

static int read_all(struct own *fresh)
{
    struct ifaddrs *all = NULL;
    int r = getifaddrs(&all) < 0 ? -errno : 0;
    for (const struct ifaddrs *i = all; i && r == 0; i = i->ifa_next) {
        struct address a;
        if (i->ifa_addr && address_from_sockaddr(i->ifa_addr, &a) == 0)
            r = add(fresh, &(struct range){ a, a.bits });
    }
    if (all)
        freeifaddrs(all);
    return r;
}

void own_look(struct own *o, int64_t now_ms)
{
    static struct range all[2]; /* of both kinds, whole */
    struct own fresh = { .read_ms = now_ms };
    if (o->read_ms && now_ms - o->read_ms <= FRESH_MS)
        return;
    if (read_all(&fresh) == 0) {
        own_done(o);
        *o = fresh;
        return;
    }
    own_done(&fresh);
    if (o->read_ms)
        return;
    all[0].net.bits = 32;
    all[1].net.bits = 128;
    *o = (struct own){ .ranges = all, .n = ARRAY_LEN(all) }; /* asked again the next time */
}

void own_done(struct own *o)
{
    if (o->room)
        free(o->ranges);
    *o = (struct own){ 0 };
}
