#include "core/template_private.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/event.h"
#include "core/grant.h"
#include "core/pool.h"
#include "core/reach.h"
#include "core/spec.h"
#include "core/team.h"
#include "core/template_build.h"
#include "core/template_memory.h"

#define LOG_MODULE "template"
#define TEMPLATES_MAX 1000  /* of one owner */
#define WARM_TOTAL_MAX 256u /* of all templates: each is memory that nobody uses yet */

bool template_name_normal(const char *name, char ret_name[TEMPLATE_NAME_SIZE])
{
    char copy[TEMPLATE_NAME_SIZE];
    int n = snprintf(copy, sizeof(copy), "%s", name);
    char *colon = strchr(copy, ':');
    if (n < 0 || (size_t)n >= sizeof(copy))
        return false;
    if (colon && strcmp(colon + 1, TEMPLATE_TAG) == 0) {
        *colon = '\0';
        colon = NULL;
    }
    if (colon)
        *colon = '\0';
    if (!name_valid(copy) || (colon && !name_valid(colon + 1)))
        return false;
    if (colon)
        *colon = ':';
    memcpy(ret_name, copy, sizeof(copy));
    return true;
}

void template_done(struct template *t)
{
    sandbox_spec_done(&t->spec);
}

/* image NULL: its name stays as it was given. */
static int copy(const struct template *from, const struct image *image, struct template *ret_to)
{
    struct template to = *from;
    int r = spec_copy(&from->spec, &to.spec);
    if (r < 0)
        return r;
    if (image) {
        free(to.spec.image);
        to.spec.image = strdup(image->as);
        if (!to.spec.image) {
            template_done(&to);
            return -ENOMEM;
        }
    }
    *ret_to = to;
    return 0;
}

/* Copy a template as `owner` sees it: under the name that reaches it, and, for another team,
 * without bindings. Those name the maker's secrets, and would send the user's secrets of the
 * same names to hosts that the user did not choose. */
static int copy_for(const struct template *from, const char *owner, struct template *ret_to)
{
    struct template to;
    int r = copy(from, NULL, &to);
    if (r < 0)
        return r;
    r = reach_name(owner, to.owner, to.name, to.as, sizeof(to.as));
    if (strcmp(to.owner, owner) != 0) {
        to.less = to.spec.bindings;
        free(to.spec.bindings);
        to.spec.bindings = NULL;
        free(to.spec.template);
        to.spec.template = strdup(to.as);
        r = to.spec.template ? r : -ENOMEM;
    }
    if (r < 0) {
        template_done(&to);
        return r;
    }
    *ret_to = to;
    return 0;
}

/* ---- with the lock held ---- */

static struct template *find(struct templates *ts, const char *owner, const char *name)
{
    for (size_t i = 0; i < ts->n; i++)
        if (strcmp(ts->items[i].owner, owner) == 0 && strcmp(ts->items[i].name, name) == 0)
            return &ts->items[i];
    return NULL;
}

/* The template that the asker means by a name, with or without its team before it. */
static struct template *find_meant(struct templates *ts, const char *asker, const char *name)
{
    struct reach reach = reach_of(asker, name);
    struct template *best = NULL;
    int rank = 0;
    for (size_t i = 0; i < ts->n; i++) {
        struct template *t = &ts->items[i];
        int r = reach_rank(&reach, t->owner, t->name, t->public);
        if (r > rank) {
            rank = r;
            best = t;
        }
    }
    return best;
}

/* Takes t's contents. */
static int put(struct templates *ts, struct template *t)
{
    struct template *at = find(ts, t->owner, t->name);
    if (!at) {
        struct template *items = reallocarray(ts->items, ts->n + 1, sizeof(*items));
        if (!items)
            return -ENOMEM;
        ts->items = items;
        at = &ts->items[ts->n++];
    } else {
        template_done(at);
    }
    *at = *t;
    memset(t, 0, sizeof(*t));
    return 0;
}

static void drop(struct templates *ts, struct template *at)
{
    template_done(at);
    *at = ts->items[--ts->n];
}

/* ---- loading ---- */

static int load_row(void *ctx, const struct store_template *row)
{
    struct template t;
    if (template_from_row(row, &t) < 0)
        return 0;
    int r = put(ctx, &t);
    if (r < 0)
        template_done(&t);
    return r;
}

int templates_load(struct core *core, struct err *err)
{
    int r = store_template_each(core->store, load_row, &core->templates, err);
    return r == -ENOMEM ? err_set(err, ENOMEM, "cannot allocate the templates") : r;
}

/* A build's, with something to start: whoever builds it may never use it. */
static bool is_by_use(const struct template *t)
{
    return !t->warm && t->spec.boot.argv && t->spec.image &&
           strncmp(t->spec.image, TEMPLATE_IMAGES, strlen(TEMPLATE_IMAGES)) == 0;
}

static void stock(struct core *core, const struct template *t)
{
    struct err err = ERR_INIT;
    int r = 0;
    if (is_by_use(t))
        r = warm_pool_stock_by_use(core, t->id, t->owner, &t->spec, &err);
    else if (t->warm || boot_any(&t->spec.boot))
        r = warm_pool_stock(core, t->id, t->owner, &t->spec, t->warm, &err);
    if (r < 0)
        log_warn("none are made ahead template=%s err=\"%s\"", t->name, err.msg);
}

void templates_stock(struct core *core)
{
    template_memory_sweep(core);
    for (size_t i = 0; i < core->templates.n; i++) /* no other thread is there yet */
        stock(core, &core->templates.items[i]);
}

void templates_done(struct templates *ts)
{
    for (size_t i = 0; i < ts->n; i++)
        template_done(&ts->items[i]);
    free(ts->items);
    ts->items = NULL;
    ts->n = 0;
}

/* ---- public ---- */

static int not_found(struct err *err, const char *name)
{
    const char *cure = image_cure(name);
    if (*cure)
        return err_fail(err, FAIL_TEMPLATE_NOT_FOUND, "no template '%s' here yet%s", name, cure);
    return err_fail(err, FAIL_TEMPLATE_NOT_FOUND,
                    "no template '%.130s' here; `warren template ls` shows what there is, another "
                    "team's as team/name",
                    name);
}

/* The reference in its stored form, "[team/]name[:tag]"; false: it is not valid. */
static bool normal_ref(const char *text, char ret_ref[TEMPLATE_REF_SIZE])
{
    char name[TEMPLATE_NAME_SIZE];
    size_t n = strcspn(text, "/");
    n = text[n] ? n + 1 : 0;
    if (n > OWNER_MAX || !template_name_normal(text + n, name))
        return false;
    int len = snprintf(ret_ref, TEMPLATE_REF_SIZE, "%.*s%s", (int)n, text, name);
    return len > 0 && len < TEMPLATE_REF_SIZE;
}

static void tell(struct core *core, const struct template *t, const char *type)
{
    char data[TEMPLATE_NAME_SIZE + 16];
    int n = snprintf(data, sizeof(data), "{\"name\":\"%s\"}", t->name);
    event_emit(core, t->owner, NULL, type, n < 0 || (size_t)n >= sizeof(data) ? NULL : data);
    log_info("%s template=%s owner=%s warm=%u", type, t->name, t->owner, t->warm);
}

static int check(struct core *core, const struct template *t, struct image *ret_image,
                 struct err *err)
{
    int r = 0;
    char normal[TEMPLATE_NAME_SIZE];
    if (!template_name_normal(t->name, normal) || strcmp(t->name, normal) != 0)
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'name' must be at most %d letters, digits, '.', '_' or '-', a letter or "
                        "digit first; a tag behind a colon likewise",
                        NAME_MAX_LEN);
    if (t->warm > TEMPLATE_WARM_MAX)
        return err_fail(err, FAIL_INVALID_FIELD, "'warm' must be from 0 to %d", TEMPLATE_WARM_MAX);
    r = spec_check(&t->spec, err);
    if (r >= 0)
        r = grant_check(core, t->owner, t->spec.bindings, err);
    if (r >= 0)
        r = boot_check(&t->spec.boot, err);
    return r < 0 ? r
                 : image_resolve(core, t->owner, t->spec.image ? t->spec.image : SPEC_IMAGE,
                                 ret_image, NULL, err);
}

static int check_room(struct core *core, const struct template *t, struct err *err)
{
    struct templates *ts = &core->templates;
    unsigned own = 0, warm = t->warm;
    (void)pthread_mutex_lock(&ts->lock);
    for (size_t i = 0; i < ts->n; i++) {
        const struct template *o = &ts->items[i];
        bool same = strcmp(o->owner, t->owner) == 0;
        if (same && strcmp(o->name, t->name) == 0)
            continue;
        own += same;
        warm += o->warm;
    }
    (void)pthread_mutex_unlock(&ts->lock);
    if (own >= TEMPLATES_MAX)
        return err_fail(err, FAIL_CAPACITY, "a team may have %d templates", TEMPLATES_MAX);
    if (t->warm && warm > WARM_TOTAL_MAX)
        return err_fail(err, FAIL_CAPACITY,
                        "with %u ready ones of this template there would be %u of all; at most %u "
                        "are kept",
                        t->warm, warm, WARM_TOTAL_MAX);
    return 0;
}

/* Records it and puts it in the place of what was there. */
static int install(struct core *core, struct template *t, struct err *err)
{
    struct templates *ts = &core->templates;
    char old[ID_SIZE] = "";
    int r = template_save(core, t, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&ts->lock);
    const struct template *at = find(ts, t->owner, t->name);
    if (at)
        memcpy(old, at->id, ID_SIZE);
    r = put(ts, t);
    (void)pthread_mutex_unlock(&ts->lock);
    if (old[0])
        warm_pool_unstock(core, old);
    return r < 0 ? err_set(err, -r, "cannot allocate a template") : 0;
}

int template_put(struct core *core, const struct template *t, struct template *ret_t,
                 struct err *err)
{
    struct templates *ts = &core->templates;
    struct template mine = { 0 }, result = { 0 };
    struct image image;
    int r = check(core, t, &image, err);
    if (r >= 0)
        r = check_room(core, t, err);
    if (r < 0)
        return r;
    if (copy(t, &image, &mine) < 0 || copy(t, &image, &result) < 0 || id_random(mine.id) < 0) {
        template_done(&mine);
        return err_set(err, ENOMEM, "cannot allocate a template");
    }
    mine.created_ms = mine.updated_ms = clock_now_ms();
    (void)pthread_mutex_lock(&ts->lock);
    const struct template *old = find(ts, t->owner, t->name);
    if (old)
        mine.created_ms = old->created_ms;
    (void)pthread_mutex_unlock(&ts->lock);
    memcpy(result.id, mine.id, ID_SIZE);
    memcpy(result.as, result.name, sizeof(result.name));
    result.created_ms = mine.created_ms;
    result.updated_ms = mine.updated_ms;
    r = install(core, &mine, err);
    template_done(&mine);
    if (r >= 0 && !team_exists(core, t->owner)) { /* it left while we were at it */
        templates_drop(core, t->owner);
        r = err_fail(err, FAIL_TEAM_NOT_FOUND, "no team '%s' here", t->owner);
    }
    if (r < 0) {
        template_done(&result);
        return r;
    }
    stock(core, &result);
    tell(core, &result, old ? "template.updated" : "template.added");
    *ret_t = result;
    return 0;
}

int template_get(struct core *core, const char *owner, const char *name, struct template *ret_t,
                 struct err *err)
{
    struct templates *ts = &core->templates;
    char ref[TEMPLATE_REF_SIZE];
    if (!normal_ref(name, ref))
        return not_found(err, name);
    (void)pthread_mutex_lock(&ts->lock);
    const struct template *found = find_meant(ts, owner, ref);
    int r = found ? copy_for(found, owner, ret_t) : -ENOENT;
    (void)pthread_mutex_unlock(&ts->lock);
    if (r == -ENOENT)
        return not_found(err, name);
    if (r < 0)
        return err_set(err, -r, "cannot allocate a template");
    ret_t->ready = warm_pool_stocked(core, ret_t->id, &ret_t->kept);
    return 0;
}

static int compare(const void *pa, const void *pb)
{
    const struct template *a = pa, *b = pb;
    return strcmp(a->as, b->as);
}

int template_list(struct core *core, const char *owner, struct template **ret_ts, size_t *ret_n,
                  struct err *err)
{
    struct templates *ts = &core->templates;
    size_t n = 0;
    int r = 0;
    (void)pthread_mutex_lock(&ts->lock);
    struct template *list = calloc(ts->n + 1, sizeof(*list));
    for (size_t i = 0; list && i < ts->n && r >= 0; i++) {
        const struct template *t = &ts->items[i];
        char as[TEMPLATE_REF_SIZE];
        /* Do not list an operator's template that an own one of the same name hides. */
        if (reach_name(owner, t->owner, t->name, as, sizeof(as)) < 0 ||
            find_meant(ts, owner, as) != t)
            continue;
        r = copy_for(t, owner, &list[n]);
        n += r >= 0;
    }
    (void)pthread_mutex_unlock(&ts->lock);
    if (!list || r < 0) {
        template_list_free(list, n);
        return err_set(err, ENOMEM, "cannot allocate the templates");
    }
    qsort(list, n, sizeof(*list), compare);
    for (size_t i = 0; i < n; i++)
        list[i].ready = warm_pool_stocked(core, list[i].id, &list[i].kept);
    *ret_ts = list;
    *ret_n = n;
    return 0;
}

void template_list_free(struct template *ts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        template_done(&ts[i]);
    free(ts);
}

int template_remove(struct core *core, const char *owner, const char *name, struct err *err)
{
    struct templates *ts = &core->templates;
    struct template gone = { 0 };
    char ref[TEMPLATE_REF_SIZE];
    if (!normal_ref(name, ref))
        return not_found(err, name);
    (void)pthread_mutex_lock(&ts->lock);
    const struct template *found = find_meant(ts, owner, ref);
    if (found && strcmp(found->owner, owner) == 0) {
        memcpy(gone.id, found->id, ID_SIZE);
        memcpy(gone.name, found->name, sizeof(gone.name));
        memcpy(gone.owner, found->owner, sizeof(gone.owner));
    }
    (void)pthread_mutex_unlock(&ts->lock);
    if (!gone.id[0])
        return not_found(err, name);
    int r = store_template_remove(core->store, owner, gone.name, err);
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&ts->lock);
    struct template *at = find(ts, owner, gone.name);
    if (at)
        drop(ts, at);
    (void)pthread_mutex_unlock(&ts->lock);
    warm_pool_unstock(core, gone.id);
    tell(core, &gone, "template.removed");
    return 0;
}

void templates_drop(struct core *core, const char *owner)
{
    struct template *list = NULL;
    size_t n = 0;
    if (template_list(core, owner, &list, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].owner, owner) == 0)
            (void)template_remove(core, owner, list[i].name, NULL);
    template_list_free(list, n);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

bool template_fits(const struct template *t, const struct sandbox_spec *spec)
{
    return !t->less && t->spec.nofile == spec->nofile && same_text(t->spec.user, spec->user) &&
           same_text(t->spec.image, spec->image);
}

bool template_uses_image(struct core *core, const struct image *image)
{
    struct templates *ts = &core->templates;
    bool operators = strcmp(image->owner, OWNER_DEFAULT) == 0, used = false;
    (void)pthread_mutex_lock(&ts->lock);
    for (size_t i = 0; i < ts->n && !used; i++) {
        const struct template *t = &ts->items[i];
        used = (operators || strcmp(t->owner, image->owner) == 0) &&
               image_meant(core, t->owner, t->spec.image ? t->spec.image : SPEC_IMAGE, image);
    }
    (void)pthread_mutex_unlock(&ts->lock);
    return used;
}

int template_begin(struct core *core, const char *owner, const char *name, struct template *ret_t,
                   struct sandbox_spec *spec, struct err *err)
{
    int r = template_get(core, owner, name, ret_t, err);
    if (r < 0)
        return r;
    struct sandbox_spec from;
    r = spec_copy(&ret_t->spec, &from);
    if (r < 0)
        return err_set(err, -r, "cannot copy a spec");
    sandbox_spec_done(spec);
    *spec = from;
    return 0;
}

void template_settle(const struct template *t, struct sandbox_spec *spec)
{
    if (strcmp(t->spec.image, spec->image) == 0)
        memcpy(spec->image_owner, t->owner, sizeof(spec->image_owner));
    if (template_fits(t, spec))
        memcpy(spec->template_id, t->id, sizeof(spec->template_id));
}
