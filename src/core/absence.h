/* absence - why a sandbox that should run does not, as far as a daemon that starts can tell.
 *
 * Three things end sandboxes while no daemon looks: the host was restarted (its boot id is another than the one that the last daemon
 * noted), `warren-keeper --teardown` ended them (the keeper noted when), or they crashed. Short reads at start. */
#pragma once
#include "core/private.h"

/* Before adopt(): read both notes. What is missing or damaged says nothing. */
void absence_read(struct core *core, const char *state_dir);
/* After it: note this boot. Whatever dies from now on is seen dying. */
void absence_noted(struct core *core, const char *state_dir);
enum sandbox_cause absence_cause(const struct core *core, const struct sandbox *s);
