/* keep - keys that a command issued, so that the next one finds them instead of issuing more.
 *
 * A daemon stores hashes of keys, and never tells a key again. So the command that had one made
 * writes it down, by the daemon's address and the team that was named, in a file of the caller's
 * own: keys.json below $XDG_CONFIG_HOME/warren or ~/.config/warren, mode 0600. A file that others
 * may read or own is not believed. Whether a key still works is for the caller to try. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct keep;

/* Opened for this process alone: another waits until it is closed. */
int keep_open(struct keep **ret_keep, struct err *err);
void keep_free(struct keep *keep);
DEFINE_FREEP(struct keep *, keep_free)
const char *keep_file(const struct keep *keep);
/* of: the daemon's address, or that and the team's name. Borrowed until the next call. false: none is kept. */
bool keep_find(struct keep *keep, const char *of, const char **ret_id, const char **ret_key);
/* Takes the place of what was kept for that; id NULL: it is forgotten. */
int keep_put(struct keep *keep, const char *of, const char *id, const char *key, struct err *err);
