/* portwatch - notices ports that open and close in sandboxes, and tells the change feed.
 *
 * It looks only while somebody follows the feed, at a few sandboxes a round, so that it costs nothing
 * otherwise; whoever reads a list of ports tells what that showed, too. What is open when it looks first
 * counts as opened then. Has a thread of its own. */
#pragma once
#include "core/private.h"

int portwatch_start(struct core *core, struct err *err);
void portwatch_stop(struct core *core);
