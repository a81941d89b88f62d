/* absence - why a sandbox that should run does not, as far as a daemon that starts can tell.
 *
 * Three things end sandboxes while no daemon looks: the host was restarted (its boot id is another than the one that the last daemon
 * noted), `warren-keeper --teardown` ended them (the keeper noted when), or they crashed. Short reads at start. */
#pragma once
#include "core/private.h"

/* Before adopt(): read both notes. A missing or damaged note counts as none. */
void absence_read(struct core *core, const char *state_dir);
/* After adopt(): note this boot. The daemon sees whatever dies from now on. */
void absence_noted(struct core *core, const char *state_dir);
enum sandbox_cause absence_cause(const struct core *core, const struct sandbox *s);
