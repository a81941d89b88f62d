#include "core/checkpoints.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/keeper.h"
#include "core/pause.h"
#include "core/table.h"

#define LOG_MODULE "checkpoint"

void checkpoint_done(struct checkpoint *c)
{
    free(c->comment);
    free(c->spec);
    pairs_done(&c->metadata);
    c->comment = c->spec = NULL;
}

int checkpoint_copy(const struct checkpoint *from, struct checkpoint *ret_to)
{
    struct checkpoint to = *from;
    to.metadata = (struct pairs){ NULL, NULL, 0 };
    to.comment = strdup(from->comment);
    to.spec = strdup(from->spec);
    if (!to.comment || !to.spec || pairs_copy(&from->metadata, &to.metadata) < 0) {
        checkpoint_done(&to);
        return -ENOMEM;
    }
    *ret_to = to;
    return 0;
}

bool checkpoint_of_template(const struct checkpoint *c)
{
    return strcmp(c->reason, TEMPLATE_REASON) == 0;
}

bool checkpoint_hidden(const struct checkpoint *c)
{
    return checkpoint_of_template(c) || strcmp(c->reason, PAUSE_REASON) == 0;
}

int checkpoint_missing(struct err *err, const char *who)
{
    return err_fail(err, FAIL_CHECKPOINT_NOT_FOUND,
                    "no checkpoint '%.64s' here; `warren checkpoints` shows what there is", who);
}

/* ---- with the table's lock held ---- */

struct checkpoint *checkpoints_find(struct core *core, const char *owner, const char *sandbox,
                                    const char *who)
{
    struct checkpoints *cs = &core->checkpoints;
    for (size_t i = 0; i < cs->n; i++) {
        struct checkpoint *c = &cs->items[i];
        if (strcmp(c->owner, owner) == 0 &&
            (strcmp(c->id, who) == 0 ||
             (sandbox && strcmp(c->sandbox, sandbox) == 0 && strcmp(c->name, who) == 0)))
            return c;
    }
    return NULL;
}

struct checkpoint *checkpoints_find_any(struct core *core, const char *id)
{
    struct checkpoints *cs = &core->checkpoints;
    for (size_t i = 0; i < cs->n; i++)
        if (strcmp(cs->items[i].id, id) == 0)
            return &cs->items[i];
    return NULL;
}

/* "SANDBOX:NAME"; the sandbox may be gone, and is then told by its id. */
static struct checkpoint *find_of(struct core *core, const char *owner, const char *who,
                                  const char *colon)
{
    char sandbox[NAME_MAX_LEN + 1];
    size_t n = (size_t)(colon - who);
    if (n >= sizeof(sandbox) || !colon[1])
        return NULL;
    memcpy(sandbox, who, n);
    sandbox[n] = '\0';
    const struct box *b = box_find(&core->table, owner, sandbox);
    return checkpoints_find(core, owner, b ? b->s.id : sandbox, colon + 1);
}

/* The only one of that name; *ret_several: there are more. */
static struct checkpoint *find_only(struct core *core, const char *owner, const char *name,
                                    bool *ret_several)
{
    struct checkpoints *cs = &core->checkpoints;
    struct checkpoint *found = NULL;
    for (size_t i = 0; *name && i < cs->n; i++) {
        struct checkpoint *c = &cs->items[i];
        if (strcmp(c->owner, owner) != 0 || strcmp(c->name, name) != 0)
            continue;
        *ret_several = found != NULL;
        if (found)
            return NULL;
        found = c;
    }
    return found;
}

int checkpoints_resolve(struct core *core, const char *owner, const char *sandbox, const char *who,
                        struct checkpoint **ret_c, struct err *err)
{
    bool several = false;
    const char *colon = strchr(who, ':');
    struct checkpoint *c = checkpoints_find(core, owner, sandbox, who);
    if (!c)
        c = colon ? find_of(core, owner, who, colon) : find_only(core, owner, who, &several);
    if (several)
        return err_fail(err, FAIL_AMBIGUOUS_NAME,
                        "several checkpoints are called '%s'; say whose: SANDBOX:%s", who, who);
    if (!c || checkpoint_of_template(c))
        return checkpoint_missing(err, who);
    *ret_c = c;
    return 0;
}

bool checkpoints_tree_used(struct core *core, const char *tree)
{
    const struct checkpoints *cs = &core->checkpoints;
    for (size_t i = 0; i < cs->n; i++)
        if (strcmp(cs->items[i].tree, tree) == 0)
            return true;
    return false;
}

uint64_t checkpoints_bytes(struct core *core, const char *owner)
{
    const struct checkpoints *cs = &core->checkpoints;
    uint64_t n = 0;
    for (size_t i = 0; i < cs->n; i++)
        if (!cs->items[i].away && strcmp(cs->items[i].owner, owner) == 0)
            n += cs->items[i].bytes + cs->items[i].memory_bytes;
    return n;
}

/* Takes c's contents. */
int checkpoints_add(struct checkpoints *cs, struct checkpoint *c)
{
    struct checkpoint *items = reallocarray(cs->items, cs->n + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    cs->items = items;
    cs->items[cs->n++] = *c;
    *c = (struct checkpoint){ 0 };
    return 0;
}

void checkpoints_drop(struct checkpoints *cs, struct checkpoint *c)
{
    size_t at = (size_t)(c - cs->items);
    checkpoint_done(c);
    memmove(c, c + 1, (cs->n - at - 1) * sizeof(*c));
    cs->n--;
}

/* ---- at rest ---- */

int checkpoints_save(struct core *core, const struct checkpoint *c, struct err *err)
{
    _cleanup_free_ char *metadata = pairs_text(&c->metadata);
    if (!metadata)
        return err_set(err, ENOMEM, "cannot allocate a checkpoint's record");
    struct store_checkpoint row = { .id = c->id,
                                    .owner = c->owner,
                                    .sandbox = c->sandbox,
                                    .parent = c->parent,
                                    .name = c->name,
                                    .comment = c->comment,
                                    .metadata = metadata,
                                    .reason = c->reason,
                                    .tree = c->tree,
                                    .spec = c->spec,
                                    .created_ms = c->created_ms,
                                    .bytes = (int64_t)c->bytes,
                                    .memory_bytes = (int64_t)c->memory_bytes };
    return store_checkpoint_put(core->store, &row, err);
}

static bool row_valid(const struct store_checkpoint *row)
{
    return id_valid(row->id) && id_valid(row->sandbox) && name_valid(row->owner) &&
           (!*row->parent || id_valid(row->parent)) && strlen(row->name) <= NAME_MAX_LEN &&
           strlen(row->tree) == KEEPER_IMAGE_SIZE - 1;
}

static int load_row(void *ctx, const struct store_checkpoint *row)
{
    struct core *core = ctx;
    struct checkpoint c = { .created_ms = row->created_ms,
                            .bytes = (uint64_t)row->bytes,
                            .memory = row->memory_bytes > 0,
                            .memory_bytes = (uint64_t)row->memory_bytes };
    if (!row_valid(row)) {
        log_error("a checkpoint's record was skipped");
        return 0;
    }
    memcpy(c.id, row->id, ID_SIZE);
    memcpy(c.sandbox, row->sandbox, ID_SIZE);
    (void)snprintf(c.parent, sizeof(c.parent), "%s", row->parent);
    (void)snprintf(c.owner, sizeof(c.owner), "%s", row->owner);
    (void)snprintf(c.name, sizeof(c.name), "%s", row->name);
    (void)snprintf(c.reason, sizeof(c.reason), "%s", row->reason);
    (void)snprintf(c.tree, sizeof(c.tree), "%s", row->tree);
    c.comment = strdup(row->comment);
    c.spec = strdup(row->spec);
    int r = c.comment && c.spec ? pairs_read(row->metadata, &c.metadata) : -ENOMEM;
    if (r >= 0)
        r = checkpoints_add(&core->checkpoints, &c);
    checkpoint_done(&c);
    return r;
}

int checkpoints_load(struct core *core, struct err *err)
{
    int r = store_checkpoint_each(core->store, load_row, core, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the checkpoints") : r;
}

int checkpoints_forget(struct core *core, const char *id, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION, .op = KEEPER_POINT_RM };
    memcpy(q.point, id, sizeof(q.point));
    return keeper_ask(core, &q, NULL, err);
}

/* A power cut can cost a part of what was just written: then it is made anew. */
static void adopt_templates(struct checkpoints *cs, struct keeper_row *rows, size_t n)
{
    keeper_rows_sort(rows, n);
    for (size_t i = 0; i < cs->n; i++) {
        struct checkpoint *c = &cs->items[i];
        const struct keeper_row *row = keeper_rows_find(rows, n, c->id);
        if (checkpoint_of_template(c) && (!row || row->memory_bytes < c->memory_bytes))
            c->orphan = true;
    }
}

/* A row comes after its files and goes before them: files without a row are nobody's. */
int checkpoints_adopt(struct core *core, struct err *err)
{
    _cleanup_free_ struct keeper_row *rows = NULL;
    size_t n = 0;
    int r = keeper_ask_list(core, KEEPER_POINT_LIST, &rows, &n, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t k = 0; k < core->checkpoints.n && !known; k++)
            known = strcmp(core->checkpoints.items[k].id, rows[i].id) == 0 &&
                    !core->checkpoints.items[k].away;
        /* One whose pause could not be recorded yet goes on from it. */
        if (!known && !pauses_need(core, rows[i].id) &&
            checkpoints_forget(core, rows[i].id, NULL) < 0)
            log_warn("files of no checkpoint stay checkpoint=%s", rows[i].id);
    }
    pauses_find_orphans(core);
    adopt_templates(&core->checkpoints, rows, n);
    return 0;
}

void checkpoints_done(struct checkpoints *cs)
{
    for (size_t i = 0; i < cs->n; i++)
        checkpoint_done(&cs->items[i]);
    free(cs->items);
    *cs = (struct checkpoints){ NULL, 0 };
}
