#include "core/uses.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "core/table.h"
#include "net/binding.h"

bool uses_add(struct uses *u, const char *name)
{
    for (size_t i = 0; i < u->n; i++)
        if (strcmp(u->names[i], name) == 0)
            return false;
    if (u->n >= BINDINGS_MAX)
        return false;
    void *more = reallocarray(u->names, u->n + 1, sizeof(*u->names));
    if (!more)
        return false;
    u->names = more;
    (void)snprintf(u->names[u->n++], sizeof(*u->names), "%s", name);
    return true;
}

void uses_done(struct uses *u)
{
    free(u->names);
    *u = (struct uses){ 0 };
}

static void tell(struct core *core, const char *owner, const struct broker_tally *t)
{
    json_t *o =
        json_pack("{s:s, s:s, s:i}", "secret", t->binding, "host", t->host, "port", (int)t->port);
    char *data = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    event_emit(core, owner, t->sandbox, "secret.used", data);
    free(data);
}

void uses_told(struct core *core, const struct broker_tally *tally)
{
    char owner[OWNER_MAX] = "";
    if (!tally->binding[0])
        return;
    (void)pthread_mutex_lock(&core->table.lock);
    struct box *b = box_find(&core->table, NULL, tally->sandbox);
    if (b && uses_add(&b->uses, tally->binding))
        memcpy(owner, b->s.owner, sizeof(owner));
    (void)pthread_mutex_unlock(&core->table.lock);
    if (owner[0])
        tell(core, owner, tally);
}
