/* denials - what a sandbox is refused becomes an event, now and then.
 *
 * The same place is told of once a minute, and one sandbox has only so many events, so that trying
 * all day costs a few rows; each event says how many were not told of since the last. Of the sandboxes
 * that were refused something lately it remembers a bounded number. */
#pragma once
#include "core/private.h"
#include "wire/broker.h"

void denials_note(struct core *core, const char *owner, const struct broker_record *rec);
void denials_done(struct core *core);
