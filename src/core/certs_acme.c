/* Names of clients' own that want a certificate: which, when, and what came of it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/alias.h"
#include "core/certs_private.h"
#include "core/wait.h"

#define LOG_MODULE "acme"
#define RETRY_FIRST_MS (60 * INT64_C(1000))
#define RETRY_MOST_MS (6 * 3600 * INT64_C(1000))
#define TICK_MS 60000
#define PEM_SIZE (64 * 1024)
#define CHALLENGES "challenges/"

/* ---- with the lock held ---- */

static struct attempt **attempt_of(struct certs *c, const char *name)
{
    struct attempt **at = &c->attempts;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

/* A third of its life before its end, however long that is. */
static bool is_due(struct certs *c, const char *name, int64_t now_ms)
{
    const struct cert *own = certs_find(c, name, true);
    const struct attempt *a = *attempt_of(c, name);
    if (certs_find(c, name, false) || (a && now_ms < a->next_ms))
        return false; /* the operator's own comes first */
    return !own || own->until_ms - now_ms < (own->until_ms - own->from_ms) / 3;
}

static void note_failure(struct certs *c, const char *name, const char *why)
{
    struct attempt **at = attempt_of(c, name), *a = *at;
    if (!a && !(a = *at = calloc(1, sizeof(*a))))
        return;
    (void)snprintf(a->name, sizeof(a->name), "%s", name);
    (void)snprintf(a->failure, sizeof(a->failure), "%s", why);
    a->pause_ms = a->pause_ms ? 2 * a->pause_ms : RETRY_FIRST_MS;
    if (a->pause_ms > RETRY_MOST_MS)
        a->pause_ms = RETRY_MOST_MS;
    a->next_ms = clock_now_ms() + a->pause_ms;
}

static void forget(struct certs *c, const char *name)
{
    struct attempt **at = attempt_of(c, name), *a = *at;
    if (a)
        *at = a->next;
    free(a);
}

/* ---- without it ---- */

static int keep(struct certs *c, const char *name, const struct buf *pem)
{
    char file[HOST_SIZE + 8];
    (void)snprintf(file, sizeof(file), "%s.pem", name);
    _cleanup_fd_ int fd =
        openat(c->acme_certs_fd, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : fd_write_full(fd, pem->data, pem->len);
    if (r >= 0 && (fsync(fd) < 0 || renameat(c->acme_certs_fd, ".new", c->acme_certs_fd, file) < 0))
        r = -errno;
    return r;
}

static void ask_for(struct certs *c, const char *name)
{
    _cleanup_(buf_done) struct buf pem = BUF_INIT(2 * PEM_SIZE);
    struct err err = ERR_INIT;
    log_info("asking for a certificate name=%s directory=%s", name, c->acme.directory);
    int r = acme_issue(&c->acme, name, &c->stop, &pem, &err);
    if (r >= 0)
        r = keep(c, name, &pem);
    if (pem.len)
        explicit_bzero(pem.data, pem.len);
    if (atomic_load(&c->stop))
        return;
    (void)pthread_mutex_lock(&c->lock);
    if (r >= 0)
        forget(c, name);
    else
        note_failure(c, name, err.code ? err.msg : strerror(-r));
    (void)pthread_cond_broadcast(&c->wake); /* the scanner takes it from here */
    (void)pthread_mutex_unlock(&c->lock);
    if (r < 0)
        log_warn("no certificate, trying again later name=%s err=\"%s\"", name,
                 err.code ? err.msg : strerror(-r));
}

/* A name that is gone needs none. */
static void drop_unwanted(struct certs *c, const struct alias *list, size_t n)
{
    (void)pthread_mutex_lock(&c->lock);
    for (const struct cert *i = c->list; i; i = i->next) {
        char file[HOST_SIZE + 8];
        bool wanted = !i->by_acme;
        for (size_t k = 0; k < n && !wanted; k++)
            wanted = strcmp(list[k].name, i->label) == 0;
        (void)snprintf(file, sizeof(file), "%s.pem", i->label);
        if (!wanted)
            (void)unlinkat(c->acme_certs_fd, file, 0);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static void ask_all(struct certs *c)
{
    _cleanup_free_ struct alias *list = NULL;
    size_t n = 0;
    if (alias_list(c->core, NULL, &list, &n, NULL) < 0)
        return;
    for (size_t i = 0; i < n && !atomic_load(&c->stop); i++) {
        (void)pthread_mutex_lock(&c->lock);
        bool due = is_due(c, list[i].name, clock_now_ms());
        (void)pthread_mutex_unlock(&c->lock);
        if (due)
            ask_for(c, list[i].name);
    }
    drop_unwanted(c, list, n);
}

void *certs_ask(void *arg)
{
    struct certs *c = arg;
    while (!atomic_load(&c->stop)) {
        ask_all(c);
        (void)pthread_mutex_lock(&c->lock);
        int64_t until = clock_mono_ms() + TICK_MS;
        while (!atomic_load(&c->stop) && !c->kicked && clock_mono_ms() < until)
            (void)wait_until(&c->wake, &c->lock, until);
        c->kicked = false;
        (void)pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* ---- what others want to know ---- */

void certs_state(struct core *core, const char *name, struct certs_state *ret_state)
{
    struct certs *c = core->certs;
    *ret_state = (struct certs_state){ 0 };
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    const struct cert *i = certs_find(c, name, false);
    if (!i)
        i = certs_find(c, name, true);
    const struct attempt *a = *attempt_of(c, name);
    ret_state->found = i && i->pem.len;
    ret_state->until_ms = i ? i->until_ms : 0;
    if (a)
        (void)snprintf(ret_state->failure, sizeof(ret_state->failure), "%s", a->failure);
    ret_state->next_try_ms = a ? a->next_ms : 0;
    (void)pthread_mutex_unlock(&c->lock);
}

int certs_challenge(struct core *core, const char *token, char ret_proof[CERTS_PROOF_SIZE])
{
    struct certs *c = core->certs;
    char path[sizeof(CHALLENGES) + CERTS_TOKEN_MAX];
    size_t n = strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
    if (!c || c->acme.dir_fd < 0 || n == 0 || token[n] || n > CERTS_TOKEN_MAX)
        return -ENOENT;
    (void)snprintf(path, sizeof(path), CHALLENGES "%s", token);
    ssize_t got = fd_read_file_at(c->acme.dir_fd, path, ret_proof, CERTS_PROOF_SIZE);
    return got > 0 ? 0 : -ENOENT;
}
