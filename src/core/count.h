/* count - how usage comes about: the thread that looks, and what life.c and others tell it. */
#pragma once
#include "core/private.h"

int usage_load(struct core *core, struct err *err); /* once the boxes are in the table */
int usage_start(struct core *core, const struct core_config *config, struct err *err);
void usage_stop(struct core *core);
void usage_round(struct core *core, int64_t spread_ms); /* one look at all of them; blocks */
void usage_look(struct core *core, const char *id);     /* at one that runs; blocks */
int usage_flush(struct core *core, struct err *err);    /* writes what was counted */
void usage_prune(struct core *core);

/* With the table's lock held: a life began, with so much cpu time used before; and ended. */
void usage_begun(struct core *core, struct box *b, int64_t now_ms, uint64_t cpu_us);
void usage_ended(struct core *core, struct box *b, const struct keeper_usage *last, bool gone);
/* Its work stands still from now on, or goes on: time asleep takes no memory. */
void usage_asleep(struct core *core, struct box *b, bool asleep, int64_t now_ms);
/* So much came in and went out over the network of one that may be gone. */
void usage_carried(struct core *core, const char *id, const char *owner, uint64_t rx_bytes,
                   uint64_t tx_bytes);
/* It died by itself; the keeper says how far it came. */
void usage_died(struct core *core, const char *id, const struct keeper_usage *last);
