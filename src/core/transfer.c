#include "core/transfer_private.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "core/wait.h"

#define TELL_MS 100      /* between two counts of the same layer */
#define TRANSFERS_MAX 32 /* each has up to four threads and as many connections */

static const char *const state_names[] = {
    [TRANSFER_WAITING] = "waiting",     [TRANSFER_DOWNLOADING] = "downloading",
    [TRANSFER_UNPACKING] = "unpacking", [TRANSFER_UPLOADING] = "uploading",
    [TRANSFER_DONE] = "done",           [TRANSFER_EXISTS] = "exists",
};

const char *transfer_state_name(enum transfer_state state)
{
    return state_names[state];
}

static int copy(const char *text, const char **ret_copy)
{
    if (!text || !*text)
        return 0;
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : -ENOMEM;
}

static int copy_config(const struct transfer_config *from, struct transfer_config *to)
{
    int r = copy(from->owner, &to->owner);
    if (r >= 0)
        r = copy(from->image, &to->image);
    if (r >= 0)
        r = copy(from->name, &to->name);
    if (r >= 0)
        r = copy(from->platform, &to->platform);
    if (r >= 0)
        r = copy(from->username, &to->username);
    if (r >= 0)
        r = copy(from->password, &to->password);
    to->insecure = from->insecure;
    to->trusted = from->trusted;
    return r;
}

static void free_text(const char *text)
{
    char *p = (char *)(uintptr_t)text;
    if (p)
        explicit_bzero(p, strlen(p)); /* one of them is a password */
    free(p);
}

int transfer_new(struct core *core, const struct transfer_config *config, struct transfer **ret_t,
                 struct err *err)
{
    _cleanup_(transfer_freep) struct transfer *t = calloc(1, sizeof(*t));
    if (!t)
        return err_set(err, ENOMEM, "cannot allocate a transfer");
    t->core = core;
    (void)pthread_mutex_init(&t->lock, NULL);
    wait_init(&t->changed);
    if (copy_config(config, &t->config) < 0)
        return err_set(err, ENOMEM, "cannot allocate a transfer");
    const char *image = config->image ? config->image : "";
    int r = reference_parse(image, strlen(image), core->registries.default_host, &t->ref, err);
    if (r < 0)
        return r;
    *ret_t = take_ptr(t);
    return 0;
}

int transfer_set_name(struct transfer *t, const char *name, struct err *err)
{
    const char *copied = NULL;
    if (copy(name, &copied) < 0)
        return err_set(err, ENOMEM, "cannot allocate a transfer");
    free_text(t->config.name);
    t->config.name = copied;
    return 0;
}

static void *run(void *arg)
{
    struct transfer *t = arg;
    struct err err = ERR_INIT;
    int r = t->run(t, &err);
    transfer_join(t);
    (void)pthread_mutex_lock(&t->lock);
    if (r < 0 && t->failed == 0) {
        t->failed = r;
        t->err = err;
    }
    t->ended = true;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    return NULL;
}

int transfer_start(struct transfer *t, struct err *err)
{
    t->counted = true;
    if (atomic_fetch_add(&t->core->registries.transfers, 1) >= TRANSFERS_MAX)
        return err_fail_as(err, EAGAIN, FAIL_CAPACITY,
                           "%d images are on their way at the moment; try again later",
                           TRANSFERS_MAX);
    int r = thread_start(&t->thread, run, t, err);
    t->started = r >= 0;
    return r;
}

void transfer_free(struct transfer *t)
{
    if (!t)
        return;
    atomic_store(&t->cancel, true);
    if (t->started)
        (void)pthread_join(t->thread, NULL);
    if (t->counted)
        (void)atomic_fetch_sub(&t->core->registries.transfers, 1);
    registry_free(t->registry);
    free_text(t->config.owner);
    free_text(t->config.image);
    free_text(t->config.name);
    free_text(t->config.platform);
    free_text(t->config.username);
    free_text(t->config.password);
    free(t->layers);
    (void)pthread_mutex_destroy(&t->lock);
    (void)pthread_cond_destroy(&t->changed);
    free(t);
}

bool transfer_cancelled(void *arg)
{
    const struct transfer *t = arg;
    return atomic_load(&t->cancel) || atomic_load(&t->core->stopping);
}

int transfer_connect(struct transfer *t, bool push, struct err *err)
{
    const struct registries *settings = &t->core->registries;
    struct registry_config config = {
        .ref = &t->ref,
        .username = t->config.username,
        .password = t->config.password,
        .insecure = t->config.insecure,
        .push = push,
        .access = { .trusted = t->config.trusted, .allow = settings->allow },
        .timeout_s = settings->timeout_s,
        .cancelled = transfer_cancelled,
        .arg = t,
    };
    return registry_new(&config, &t->registry, err);
}

/* ---- layers ---- */

int transfer_set_layers(struct transfer *t, const struct descriptor *layers, size_t n,
                        struct err *err)
{
    struct transfer_layer *list = calloc(n ? n : 1, sizeof(*list));
    if (!list)
        return err_set(err, ENOMEM, "cannot allocate a list of layers");
    for (size_t i = 0; i < n; i++)
        list[i].blob = layers[i];
    (void)pthread_mutex_lock(&t->lock);
    t->layers = list;
    t->n = n;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    return 0;
}

void transfer_set_state(struct transfer *t, size_t i, enum transfer_state state)
{
    (void)pthread_mutex_lock(&t->lock);
    t->layers[i].told = t->layers[i].told && t->layers[i].state == state;
    t->layers[i].state = state;
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
}

void transfer_set_bytes(struct transfer *t, size_t i, uint64_t bytes)
{
    (void)pthread_mutex_lock(&t->lock);
    t->layers[i].bytes = bytes; /* the reader looks by itself, every TELL_MS */
    (void)pthread_mutex_unlock(&t->lock);
}

void transfer_set_ready(struct transfer *t, size_t i, enum transfer_state state)
{
    (void)pthread_mutex_lock(&t->lock);
    t->layers[i].ready = true;
    t->layers[i].bytes = t->layers[i].blob.size;
    (void)pthread_mutex_unlock(&t->lock);
    transfer_set_state(t, i, state);
}

static void note_failure(struct transfer *t, int r, const struct err *err)
{
    (void)pthread_mutex_lock(&t->lock);
    if (t->failed == 0) {
        t->failed = r;
        t->err = *err;
    }
    (void)pthread_cond_broadcast(&t->changed);
    (void)pthread_mutex_unlock(&t->lock);
    atomic_store(&t->cancel, true); /* the others need not go on */
}

/* The next layer for a thread; false when there is none, or no sense in going on. */
static bool take_layer(struct transfer *t, size_t *ret_i)
{
    bool found = false;
    (void)pthread_mutex_lock(&t->lock);
    while (t->failed == 0 && t->next < t->n && !found) {
        *ret_i = t->next++;
        found = !t->layers[*ret_i].ready;
    }
    (void)pthread_mutex_unlock(&t->lock);
    return found && !transfer_cancelled(t);
}

static void *mover(void *arg)
{
    struct transfer *t = arg;
    size_t i;
    while (take_layer(t, &i)) {
        struct err err = ERR_INIT;
        int r = t->move(t, i, &err);
        if (r < 0)
            note_failure(t, r, &err);
    }
    return NULL;
}

int transfer_move_layers(struct transfer *t, struct err *err)
{
    while (t->nmovers < TRANSFER_THREADS && t->nmovers < t->n) {
        int r = thread_start(&t->movers[t->nmovers], mover, t, err);
        if (r < 0 && t->nmovers == 0)
            return r;
        if (r < 0)
            break; /* fewer will do */
        t->nmovers++;
    }
    return 0;
}

int transfer_wait_layer(struct transfer *t, size_t i, struct err *err)
{
    int r = 0;
    (void)pthread_mutex_lock(&t->lock);
    while (t->failed == 0 && !t->layers[i].ready && !transfer_cancelled(t))
        (void)wait_until(&t->changed, &t->lock, clock_mono_ms() + 1000);
    if (t->failed < 0) {
        r = t->failed;
        if (err)
            *err = t->err;
    } else if (!t->layers[i].ready) {
        r = err_fail(err, FAIL_CANCELLED, "cancelled");
    }
    (void)pthread_mutex_unlock(&t->lock);
    return r;
}

void transfer_join(struct transfer *t)
{
    (void)pthread_mutex_lock(&t->lock);
    t->next = t->n; /* nothing more to take */
    (void)pthread_mutex_unlock(&t->lock);
    for (; t->nmovers > 0; t->nmovers--)
        (void)pthread_join(t->movers[t->nmovers - 1], NULL);
}

/* ---- reading ---- */

static bool tell_layer(struct transfer *t, int64_t now_ms, struct transfer_event *ev)
{
    for (size_t i = 0; i < t->n; i++) {
        struct transfer_layer *l = &t->layers[i];
        if (l->told && (l->bytes == l->told_bytes || now_ms - l->told_ms < TELL_MS))
            continue;
        l->told = true;
        l->told_ms = now_ms;
        l->told_bytes = l->bytes;
        ev->type = TRANSFER_LAYER;
        memcpy(ev->digest, l->blob.digest, sizeof(ev->digest));
        ev->state = l->state;
        ev->bytes = l->bytes;
        ev->total = l->blob.size;
        return true;
    }
    return false;
}

static bool tell_end(struct transfer *t, struct transfer_event *ev)
{
    if (!t->ended || t->told_end)
        return false;
    t->told_end = true;
    ev->type = t->failed < 0 ? TRANSFER_FAILED : TRANSFER_IMAGE;
    ev->err = t->err;
    ev->image = t->image;
    memcpy(ev->digest, t->digest, sizeof(ev->digest));
    (void)reference_text(&t->ref, ev->reference);
    return true;
}

int transfer_next(struct transfer *t, int timeout_ms, struct transfer_event *ret_event)
{
    int64_t until_ms = clock_mono_ms() + timeout_ms;
    int found = 0;
    memset(ret_event, 0, sizeof(*ret_event));
    (void)pthread_mutex_lock(&t->lock);
    for (;;) {
        int64_t now_ms = clock_mono_ms();
        found = tell_layer(t, now_ms, ret_event) || tell_end(t, ret_event);
        if (found || now_ms >= until_ms)
            break;
        (void)wait_until(&t->changed, &t->lock,
                         now_ms + TELL_MS < until_ms ? now_ms + TELL_MS : until_ms);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return found;
}
