/* ledger - the accounts of all sandboxes, kept by one thread.
 *
 * What the broker says is put in a queue and written a little later, many at once, so that nobody waits
 * for a disk and a sandbox that tries a thousand things a second costs a few writes. The queue is
 * bounded: entries that find no room are dropped, sums are not. Accounts count for the team's disk
 * quota, are written even beyond it, and stay for a while after their sandbox's end: until the
 * quota's room is needed, the oldest first. Denials become events here, only so many of one sandbox. */
#pragma once
#include "core/account.h"
#include "core/private.h"

int ledger_open(struct core *core, const char *state_dir,
                struct err *err); /* sandboxes are known */
int ledger_start(struct core *core, struct err *err);
void ledger_stop(struct core *core); /* writes what is in the queue */

/* From the broker; short, and never waits. */
void ledger_record(struct core *core, const struct broker_record *rec);
void ledger_tally(struct core *core, const struct broker_tally *tally);
void ledger_new_broker(struct core *core); /* what is marked as open is not any more */

/* What is written when this returns was told before it was called, unless it takes too long. */
void ledger_settle(struct core *core);
void ledger_wait(struct core *core, int64_t until_ms); /* for something to be written, of any */
/* Opens one account to be read, and nobody writes until ledger_leave. -ENOENT: there is none. */
int ledger_enter(struct core *core, const char *sandbox, struct account *ret_account);
void ledger_leave(struct core *core, struct account *account);
bool ledger_is_open(struct core *core, const struct broker_record *rec); /* still going on */
uint64_t ledger_spent(struct core *core, const char *sandbox); /* bytes of its egress, ever */

/* Has accounts removed soon, of teams that are over their quota or no longer here. */
void ledger_make_room(struct core *core);

/* accounts.c */

uint64_t accounts_bytes(const struct core *core, const char *sandbox); /* on disk; 0: none */
/* The account of the owner's sandbox took `before` bytes and takes `after` now. */
void accounts_changed(struct core *core, const char *sandbox, const char *owner, uint64_t before,
                      uint64_t after);
/* Removes accounts of sandboxes that are gone: for long, or whose team needs their room. */
void accounts_prune(struct core *core);
