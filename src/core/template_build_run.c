/* A template's build: its thread follows the image's, tries what came of it and puts it in place. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/pool.h"
#include "core/template_build_private.h"

#define LOG_MODULE "template"
#define LOOK_MS 200 /* between looks whether it was cancelled, or there is room to begin */
#define STEP_BASE "base"
#define STEP_END "finalize"
#define NOTE_MAX 4096

struct follower {
    struct template_builder *tb;
    unsigned line;
    char step[BUILD_LOG_STEP_MAX];
    char title[NOTE_MAX]; /* of a step that has not been told of yet; "" otherwise */
    struct image image;
};

static void note(struct template_builder *tb, enum build_log_level level, const char *text)
{
    (void)pthread_mutex_lock(&tb->core->template_builds.lock);
    build_log_note(&tb->log, level, text);
    (void)pthread_mutex_unlock(&tb->core->template_builds.lock);
}

static void enter_step(struct follower *f, const char *step)
{
    (void)snprintf(f->step, sizeof(f->step), "%s", step);
    (void)pthread_mutex_lock(&f->tb->core->template_builds.lock);
    build_log_step(&f->tb->log, step);
    (void)pthread_mutex_unlock(&f->tb->core->template_builds.lock);
}

/* ---- the image ---- */

static void on_step(struct follower *f, const struct build_event *ev)
{
    char step[BUILD_LOG_STEP_MAX] = STEP_BASE;
    if (ev->n > 1 && ev->line == f->line)
        return; /* the same step of the client's */
    f->line = ev->line;
    if (ev->line)
        (void)snprintf(step, sizeof(step), "%u", ev->line);
    enter_step(f, step);
    if (ev->line)
        (void)snprintf(f->title, sizeof(f->title), "[builder %u/%zu] %.3900s", ev->line,
                       f->tb->recipe.steps.n, ev->text);
    else
        (void)snprintf(f->title, sizeof(f->title), "[base] %.3900s", ev->text);
}

static void tell_title(struct follower *f, bool cached)
{
    char text[NOTE_MAX + 8];
    if (!f->title[0])
        return;
    (void)snprintf(text, sizeof(text), "%s%s", cached ? "CACHED " : "", f->title);
    f->title[0] = '\0';
    note(f->tb, LOG_LINE_INFO, text);
}

static void on_event(struct follower *f, const struct build_event *ev)
{
    if (ev->type == BUILD_STEP) {
        if (ev->n == 1 || ev->line != f->line)
            tell_title(f, false);
        on_step(f, ev);
        return;
    }
    tell_title(f, ev->type == BUILD_CACHED);
    if (ev->type == BUILD_LOG) {
        (void)pthread_mutex_lock(&f->tb->core->template_builds.lock);
        build_log_output(&f->tb->log, ev->stream, ev->text, ev->len);
        (void)pthread_mutex_unlock(&f->tb->core->template_builds.lock);
    }
    if (ev->type == BUILD_WARNING)
        note(f->tb, LOG_LINE_WARN, ev->text);
}

static int follow(struct follower *f, struct build *build, struct err *err)
{
    for (;;) {
        struct build_event ev;
        if (atomic_load(&f->tb->cancel))
            return err_set(err, ECANCELED, "the build was cancelled");
        int r = build_next(build, LOOK_MS, -1, &ev);
        if (r < 0)
            return err_set(err, -r, "cannot follow the build");
        if (r == 0)
            continue;
        on_event(f, &ev);
        bool ended = ev.type == BUILD_IMAGE || ev.type == BUILD_FAILED;
        if (ev.type == BUILD_IMAGE)
            f->image = ev.image;
        if (ev.type == BUILD_FAILED) {
            *err = ev.err;
            if (ev.line)
                (void)snprintf(f->step, sizeof(f->step), "%u", ev.line);
            r = ev.err.code ? -ev.err.code : -EIO;
        }
        build_event_done(&ev);
        if (ended)
            return r < 0 ? r : 0;
    }
}

/* Waits while as many run as may. */
static int begin(struct template_builder *tb, struct build **ret_build, struct err *err)
{
    char name[IMAGE_NAME_MAX];
    struct template_recipe *recipe = &tb->recipe;
    struct build_config config = { .owner = tb->b.owner,
                                   .name = name,
                                   .network = recipe->network,
                                   .no_cache = recipe->no_cache,
                                   .trusted = recipe->trusted,
                                   .recipe = &recipe->steps };
    (void)snprintf(name, sizeof(name), TEMPLATE_IMAGES "%s:%s", tb->b.template, tb->b.id);
    recipe->steps.base = recipe->image;
    for (;;) {
        int r = build_begin(tb->core, &config, ret_build, err);
        if (r != -EBUSY)
            return r < 0 ? r : build_start(*ret_build, err);
        if (atomic_load(&tb->cancel))
            return err_set(err, ECANCELED, "the build was cancelled");
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static int make_image(struct follower *f, struct err *err)
{
    struct build *build = NULL;
    enter_step(f, STEP_BASE);
    int r = begin(f->tb, &build, err);
    if (r >= 0) {
        template_build_become(f->tb, BUILD_RUNNING, "", "");
        r = follow(f, build, err);
    }
    build_free(build);
    return r;
}

/* ---- the template ---- */

/* As sandboxes of it will be. */
static int fill(struct follower *f, struct template *t, struct err *err)
{
    const struct template_build *b = &f->tb->b;
    struct template_recipe *recipe = &f->tb->recipe;
    struct image_config config = { 0 };
    struct sandbox_spec *spec = &t->spec;
    sandbox_spec_init(spec);
    int r = image_resolve(f->tb->core, b->owner, f->image.name, &f->image, &config, err);
    if (r < 0)
        return r;
    memcpy(t->owner, b->owner, sizeof(t->owner));
    t->public = f->tb->base.public && strcmp(f->tb->base.name, b->template) == 0 &&
                strcmp(f->tb->base.owner, b->owner) == 0; /* a new version of its own base */
    spec->image = strdup(f->image.name);
    spec->user = strdup(config.user ? config.user : "root");
    spec->workdir = strdup(config.workdir ? config.workdir : "/");
    spec->cpu_millis = b->cpu_millis ? b->cpu_millis : spec->cpu_millis;
    spec->memory_bytes = b->memory_bytes ? b->memory_bytes : spec->memory_bytes;
    if (b->disk_bytes > spec->disk_bytes)
        spec->disk_bytes = b->disk_bytes;
    const char *network = f->tb->base.spec.network;
    network = network ? network : recipe->network;
    spec->network = network ? strdup(network) : NULL;
    r = boot_copy(&recipe->boot, &spec->boot);
    if (r >= 0)
        r = pairs_copy(&f->tb->base.spec.env, &spec->env);
    image_config_done(&config);
    return r < 0 || !spec->image || !spec->user || !spec->workdir || (network && !spec->network)
               ? err_set(err, ENOMEM, "cannot allocate a template")
               : 0;
}

static int put(struct follower *f, struct template *t, const char *tag, struct err *err)
{
    struct template made = { 0 };
    char name[TEMPLATE_NAME_SIZE];
    (void)snprintf(name, sizeof(name), "%.63s:%.63s", f->tb->b.template, tag);
    if (!template_name_normal(name, t->name))
        return err_set(err, EINVAL, "'%s' is no name", name);
    free(t->spec.template);
    t->spec.template = strdup(t->name);
    if (!t->spec.template)
        return err_set(err, ENOMEM, "cannot allocate a template");
    int r = template_put(f->tb->core, t, &made, err);
    if (r >= 0)
        warm_pool_use(f->tb->core, made.id); /* what is built is often used at once */
    template_done(&made);
    return r;
}

static int make_template(struct follower *f, struct err *err)
{
    struct template_builder *tb = f->tb;
    struct template t = { 0 };
    enter_step(f, STEP_END);
    int r = fill(f, &t, err);
    if (r >= 0 && boot_any(&t.spec.boot)) {
        note(tb, LOG_LINE_INFO, "[finalize] Running start command and waiting until it is ready");
        r = warm_pool_try(tb->core, t.owner, &t.spec, &tb->cancel, err);
        if (r < 0 && err->failure == FAIL_TEMPLATE_NOT_READY)
            r = err_wrap(err, r, "%s command failed", t.spec.boot.argv ? "start" : "ready");
    }
    for (size_t i = 0; i < tb->b.n_tags && r >= 0; i++)
        r = put(f, &t, tb->b.tags[i], err);
    template_done(&t);
    return r;
}

void *template_build_run(void *arg)
{
    struct template_builder *tb = arg;
    struct follower f = { .tb = tb };
    struct err err = ERR_INIT;
    int r = make_image(&f, &err);
    if (r >= 0)
        r = make_template(&f, &err);
    if (r < 0 && !err.msg[0])
        (void)err_set(&err, -r, "the build failed");
    if (r < 0)
        note(tb, LOG_LINE_ERROR, err.msg);
    else
        note(tb, LOG_LINE_INFO, "Build finished");
    (void)pthread_mutex_lock(&tb->core->template_builds.lock);
    build_log_end(&tb->log);
    (void)pthread_mutex_unlock(&tb->core->template_builds.lock);
    template_build_become(tb, r < 0 ? BUILD_BROKEN : BUILD_READY, r < 0 ? f.step : "",
                          r < 0 ? err.msg : "");
    template_images_sweep(tb->core, tb->b.owner);
    log_info("template build %s template=%s build=%s err=\"%s\"", r < 0 ? "failed" : "done",
             tb->b.template, tb->b.id, r < 0 ? err.msg : "");
    (void)pthread_mutex_lock(&tb->core->template_builds.lock);
    tb->ended = true;
    (void)pthread_mutex_unlock(&tb->core->template_builds.lock);
    return NULL;
}
