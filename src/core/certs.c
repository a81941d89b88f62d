#include "core/certs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/ca.h"
#include "core/certs_private.h"
#include "core/wait.h"
#include "wire/broker.h"

#define LOG_MODULE "certs"
#define SCAN_MS 2000
#define PEM_SIZE (64 * 1024)
#define CERTS_MAX 10000
#define STATE_PATH_SIZE 512

/* ---- to the broker ---- */

/* With the lock held. */
static void tell(struct certs *c, enum broker_cert_what what, const char *label,
                 const struct buf *pem)
{
    struct broker_cert msg = { .type = BROKER_CERT, .what = what };
    _cleanup_fd_ int fd = -1;
    (void)snprintf(msg.label, sizeof(msg.label), "%s", label);
    if (pem && pem->len) {
        fd = memfd_create("certificate", MFD_CLOEXEC);
        if (fd < 0 || fd_write_full(fd, pem->data, pem->len) < 0) {
            log_error("no memory for a certificate label=%s", label);
            return;
        }
    }
    int r = c->core->broker_fd < 0
                ? 0
                : networks_send(c->core, &msg, sizeof(msg), &fd, fd >= 0 ? 1 : 0);
    if (r < 0)
        log_warn("the broker was not told of a certificate label=%s err=%d", label, -r);
}

void certs_tell(struct core *core)
{
    struct certs *c = core->certs;
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    if (c->server.len)
        tell(c, BROKER_CERT_DEFAULT, "", &c->server);
    if (c->below.len)
        tell(c, BROKER_CERT_BELOW, "", &c->below);
    for (const struct cert *i = c->list; i; i = i->next)
        if (i->pem.len)
            tell(c, BROKER_CERT_NAMED, i->label, &i->pem);
    (void)pthread_mutex_unlock(&c->lock);
}

/* ---- the local authority's ---- */

static void renew_own(struct certs *c)
{
    struct buf server = BUF_INIT(PEM_SIZE), below = BUF_INIT(PEM_SIZE);
    struct err err = ERR_INIT;
    int64_t server_ms, below_ms, now = clock_now_ms();
    if (!c->ca || now < c->renew_ms)
        return;
    if (ca_issue(c->ca, CA_SERVER, &server, &server_ms, &err) < 0 ||
        ca_issue(c->ca, CA_BELOW, &below, &below_ms, &err) < 0) {
        log_error("%s", err.msg);
        buf_done(&server);
        buf_done(&below);
        return;
    }
    c->renew_ms = now + ((server_ms < below_ms ? server_ms : below_ms) - now) * 2 / 3;
    (void)pthread_mutex_lock(&c->lock);
    buf_done(&c->server);
    buf_done(&c->below);
    c->server = server;
    c->below = below;
    tell(c, BROKER_CERT_DEFAULT, "", &c->server);
    tell(c, BROKER_CERT_BELOW, "", &c->below);
    (void)pthread_mutex_unlock(&c->lock);
}

/* ---- files ---- */

static void cert_free(struct cert *i)
{
    if (i->pem.len)
        explicit_bzero(i->pem.data, i->pem.len);
    buf_done(&i->pem);
    free(i);
}

static int64_t time_of(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) * 1000 : 0;
}

/* False: no certificate with its key. */
static bool check(struct cert *i)
{
    BIO *bio = BIO_new_mem_buf(i->pem.data, (int)i->pem.len);
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    bool again = cert && BIO_reset(bio) == 1;
    EVP_PKEY *key = again ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    bool ok = key && X509_check_private_key(cert, key) == 1;
    if (ok) {
        i->from_ms = time_of(X509_get0_notBefore(cert));
        i->until_ms = time_of(X509_get0_notAfter(cert));
    }
    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(bio);
    ERR_clear_error();
    return ok;
}

/* NAME.pem, and NAME.key behind it if there is one. */
static void read_pem(int dir, const char *label, struct buf *out)
{
    static const char *const ends[] = { "pem", "key" };
    char text[PEM_SIZE], name[HOST_SIZE + 8];
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        (void)snprintf(name, sizeof(name), "%s.%s", label, ends[i]);
        ssize_t n = fd_read_file_at(dir, name, text, sizeof(text));
        if (n > 0)
            (void)buf_append(out, text, (size_t)n);
    }
    explicit_bzero(text, sizeof(text));
}

struct cert *certs_find(const struct certs *c, const char *label, bool by_acme)
{
    struct cert *i = c->list;
    while (i && (i->by_acme != by_acme || strcmp(i->label, label) != 0))
        i = i->next;
    return i;
}

/* With the lock held: what lies in the file now. */
static void look_at(struct certs *c, int dir, const char *label, const struct stat *st,
                    bool by_acme)
{
    struct cert *i = certs_find(c, label, by_acme);
    if (i && i->size == st->st_size && i->changed.tv_sec == st->st_mtim.tv_sec &&
        i->changed.tv_nsec == st->st_mtim.tv_nsec) {
        i->seen = true;
        return;
    }
    if (!i && (c->n >= CERTS_MAX || !(i = calloc(1, sizeof(*i)))))
        return;
    if (!i->label[0]) {
        (void)snprintf(i->label, sizeof(i->label), "%s", label);
        i->by_acme = by_acme;
        i->next = c->list;
        c->list = i;
        c->n++;
    }
    i->seen = true;
    i->changed = st->st_mtim;
    i->size = st->st_size;
    buf_done(&i->pem);
    i->pem = (struct buf)BUF_INIT(2 * PEM_SIZE);
    read_pem(dir, label, &i->pem);
    if (!i->pem.len || !check(i)) {
        log_warn("this is no certificate with its key, or cannot be read file=%s.pem", label);
        buf_done(&i->pem);
        i->until_ms = 0;
    } else {
        log_info("a certificate is used name=%s", label);
    }
    tell(c, BROKER_CERT_NAMED, label, &i->pem);
}

static void scan(struct certs *c, int dir_fd, bool by_acme)
{
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        if (copy >= 0)
            (void)close(copy);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        char label[HOST_SIZE];
        struct stat st;
        if (n < 5 || n - 4 >= HOST_SIZE || strcmp(e->d_name + n - 4, ".pem") != 0 ||
            e->d_name[0] == '.' || fstatat(dir_fd, e->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
            continue;
        (void)snprintf(label, sizeof(label), "%.*s", (int)(n - 4), e->d_name);
        (void)pthread_mutex_lock(&c->lock);
        look_at(c, dir_fd, label, &st, by_acme);
        (void)pthread_mutex_unlock(&c->lock);
    }
    (void)closedir(dir);
}

/* What has no file any more. */
static void sweep(struct certs *c)
{
    (void)pthread_mutex_lock(&c->lock);
    for (struct cert **at = &c->list; *at;) {
        struct cert *i = *at;
        if (i->seen) {
            i->seen = false;
            at = &i->next;
            continue;
        }
        *at = i->next;
        c->n--;
        log_info("a certificate is no longer used name=%s", i->label);
        tell(c, BROKER_CERT_NAMED, i->label, NULL);
        cert_free(i);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static void look(struct certs *c)
{
    renew_own(c);
    scan(c, c->dir_fd, false);
    if (c->acme_certs_fd >= 0)
        scan(c, c->acme_certs_fd, true);
    sweep(c);
}

static void *run_scanner(void *arg)
{
    struct certs *c = arg;
    while (!atomic_load(&c->stop)) {
        look(c);
        (void)pthread_mutex_lock(&c->lock);
        if (!atomic_load(&c->stop))
            (void)wait_until(&c->wake, &c->lock, clock_mono_ms() + SCAN_MS);
        (void)pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* ---- life ---- */

static int open_dir(const char *path, int *ret_fd, struct err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot make '%s'", path);
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? err_set(err, errno, "cannot open '%s'", path) : 0;
}

static int open_below(const struct certs_config *config, const char *name, int *ret_fd,
                      struct err *err)
{
    char path[STATE_PATH_SIZE];
    int n = snprintf(path, sizeof(path), "%s/%s", config->state, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(err, ENAMETOOLONG, "the path '%s' is too long", config->state);
    return open_dir(path, ret_fd, err);
}

static int prepare_acme(struct certs *c, const struct certs_config *config, struct err *err)
{
    int r = open_below(config, "acme", &c->acme.dir_fd, err);
    if (r >= 0)
        r = open_below(config, "acme/certs", &c->acme_certs_fd, err);
    c->acme_directory = strdup(config->acme_directory);
    c->acme_email = config->acme_email ? strdup(config->acme_email) : NULL;
    c->acme.directory = c->acme_directory;
    c->acme.email = c->acme_email;
    c->acme.hook_fd = config->acme_hook_fd;
    if (r >= 0 && !c->acme_directory)
        r = err_set(err, ENOMEM, "out of memory");
    return r < 0 ? r : acme_prepare(&c->acme, err);
}

static int prepare(struct certs *c, const struct certs_config *config, struct err *err)
{
    char path[STATE_PATH_SIZE];
    int r = config->dir ? open_dir(config->dir, &c->dir_fd, err)
                        : open_below(config, "certs", &c->dir_fd, err);
    (void)snprintf(path, sizeof(path), "%s/ca", config->state);
    if (r >= 0 && config->own_default)
        r = ca_open(path, config->domain, &c->ca, err);
    if (r >= 0 && config->acme_directory)
        r = prepare_acme(c, config, err);
    return r;
}

int certs_start(struct core *core, const struct certs_config *config, struct err *err)
{
    struct certs *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, ENOMEM, "cannot allocate the certificates");
    c->core = core;
    c->dir_fd = c->acme_certs_fd = c->acme.dir_fd = -1;
    (void)pthread_mutex_init(&c->lock, NULL);
    wait_init(&c->wake);
    int r = prepare(c, config, err);
    core->certs = c; /* certs_stop frees it */
    if (r < 0)
        return r;
    look(c); /* so that the broker's first hello finds them */
    c->scanning = pthread_create(&c->scanner, NULL, run_scanner, c) == 0;
    if (config->acme_directory)
        c->asking = pthread_create(&c->asker, NULL, certs_ask, c) == 0;
    if (!c->scanning || (config->acme_directory && !c->asking))
        return err_set(err, EAGAIN, "cannot start a thread for certificates");
    return 0;
}

void certs_stop(struct core *core)
{
    struct certs *c = core->certs;
    if (!c)
        return;
    atomic_store(&c->stop, true);
    (void)pthread_mutex_lock(&c->lock);
    (void)pthread_cond_broadcast(&c->wake);
    (void)pthread_mutex_unlock(&c->lock);
    if (c->scanning)
        (void)pthread_join(c->scanner, NULL);
    if (c->asking)
        (void)pthread_join(c->asker, NULL);
    core->certs = NULL;
    while (c->list) {
        struct cert *i = c->list;
        c->list = i->next;
        cert_free(i);
    }
    while (c->attempts) {
        struct attempt *a = c->attempts;
        c->attempts = a->next;
        free(a);
    }
    buf_done(&c->server);
    buf_done(&c->below);
    ca_free(c->ca);
    cleanup_close(&c->dir_fd);
    cleanup_close(&c->acme_certs_fd);
    cleanup_close(&c->acme.dir_fd);
    free(c->acme_directory);
    free(c->acme_email);
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->wake);
    free(c);
}

void certs_wake(struct core *core)
{
    struct certs *c = core->certs;
    if (!c)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->kicked = true;
    (void)pthread_cond_broadcast(&c->wake);
    (void)pthread_mutex_unlock(&c->lock);
}

const char *certs_authority(const struct core *core)
{
    return core->certs && core->certs->ca ? ca_pem(core->certs->ca) : NULL;
}
