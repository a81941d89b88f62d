/* event - the change feed: what happened, in order, kept for later readers.
 *
 * Written by the nouns after the fact. The newest EVENT_KEEP are kept. Readers poll by sequence
 * number or wait for the next one. */
#pragma once
#include <stdint.h>

#include "base/id.h"
#include "core/core.h"

#define EVENT_KEEP 100000

struct event {
    int64_t seq;
    int64_t time_ms;
    char type[32];
    char owner[OWNER_MAX];
    char sandbox[ID_SIZE]; /* empty: about no sandbox */
    char *data;            /* a JSON object as text, owned */
};

struct event_list {
    struct event *items;
    size_t n;
    int64_t next; /* pass as `since` to go on */
};

/* `data` is a JSON object as text, or NULL for {}. A failure to record is logged, not returned. */
void event_emit(struct core *core, const char *owner, const char *sandbox, const char *type,
                const char *data);
/* Events with seq > since; sandbox NULL for all. Waits up to wait_ms for the first one. */
int event_read(struct core *core, const char *owner, const char *sandbox, int64_t since,
               unsigned limit, int wait_ms, struct event_list *ret_list, struct err *err);
void event_list_done(struct event_list *list);
