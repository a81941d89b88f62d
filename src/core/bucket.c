#include "core/bucket.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/number.h"
#include "core/keeper.h"
#include "core/private.h"
#include "core/secret.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443
#define LOOK_MS 200
#define TRIES 3 /* a keeper that dies meanwhile is started again */

static int read_endpoint(const char *text, struct bucket_config *c)
{
    const char *host = strncmp(text, "https://", 8) == 0  ? text + 8
                       : strncmp(text, "http://", 7) == 0 ? text + 7
                                                          : NULL;
    if (!host)
        return -EINVAL;
    uint32_t port = host - text == 8 ? HTTPS_PORT : HTTP_PORT;
    size_t n = strcspn(host, ":/");
    const char *end = host + n;
    if (n == 0 || n >= sizeof(c->host))
        return -EINVAL;
    if (*end == ':') {
        size_t digits = strspn(end + 1, "0123456789");
        char number[8] = "";
        if (digits == 0 || digits > 5)
            return -EINVAL;
        memcpy(number, end + 1, digits);
        if (number_u32(number, UINT16_MAX, &port) < 0 || port == 0)
            return -EINVAL;
        end += 1 + digits;
    }
    if (*end == '/')
        end++;
    memcpy(c->host, host, n);
    c->host[n] = '\0';
    c->port = (uint16_t)port;
    c->tls = host - text == 8;
    return *end || !bucket_host_valid(c->host) ? -EINVAL : 0;
}

static int bad(struct err *err, const char *member, const char *rule)
{
    return err_fail(err, FAIL_INVALID_FIELD, "'bucket.%s' must be %s", member, rule);
}

int bucket_check(struct core *core, const char *owner, const struct bucket *b, struct err *err)
{
    struct bucket_config c = { 0 };
    struct secret s = { 0 };
    if (read_endpoint(b->endpoint, &c) < 0)
        return bad(err, "endpoint", "http[s]://HOST[:PORT]");
    if (!bucket_name_valid(b->bucket))
        return bad(err, "bucket", "the name of a bucket");
    if (!bucket_prefix_valid(b->prefix))
        return bad(err, "prefix", "names with slashes between, of letters, digits and ._=+@-");
    if (!bucket_region_valid(b->region))
        return bad(err, "region", "letters, digits and '-'");
    if (!bucket_key_valid(b->access_key))
        return bad(err, "access_key", "the public half of a key");
    if (!*b->secret)
        return bad(err, "secret", "the name of a secret: the other half of the key");
    int r = secret_get(core, owner, b->secret, &s, err);
    secret_done(&s);
    return r;
}

/* ---- at rest ---- */

char *bucket_text(const struct bucket *b)
{
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b}", "endpoint", b->endpoint, "bucket",
                  b->bucket, "prefix", b->prefix, "region", b->region, "access_key", b->access_key,
                  "secret", b->secret, "path_style", b->path_style, "read_only", b->read_only);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return text;
}

static bool copy_text(const char *from, char *to, size_t size)
{
    int n = snprintf(to, size, "%s", from);
    return n >= 0 && (size_t)n < size;
}

int bucket_read(const char *text, struct bucket *ret_b)
{
    struct bucket b = { 0 };
    const char *endpoint, *bucket, *prefix, *region, *access_key, *secret;
    int path_style, read_only;
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    bool ok =
        json_unpack(o, "{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b}", "endpoint", &endpoint, "bucket",
                    &bucket, "prefix", &prefix, "region", &region, "access_key", &access_key,
                    "secret", &secret, "path_style", &path_style, "read_only", &read_only) == 0 &&
        *endpoint && copy_text(endpoint, b.endpoint, sizeof(b.endpoint)) &&
        copy_text(bucket, b.bucket, sizeof(b.bucket)) &&
        copy_text(prefix, b.prefix, sizeof(b.prefix)) &&
        copy_text(region, b.region, sizeof(b.region)) &&
        copy_text(access_key, b.access_key, sizeof(b.access_key)) &&
        copy_text(secret, b.secret, sizeof(b.secret));
    json_decref(o);
    if (!ok)
        return -EINVAL;
    b.path_style = path_style;
    b.read_only = read_only;
    *ret_b = b;
    return 0;
}

/* ---- in a cell ---- */

static int write_config(struct core *core, const char *owner, const struct bucket *b,
                        struct bucket_config *c, struct err *err)
{
    char *value = NULL;
    size_t n = 0;
    int r = secret_value(core, owner, b->secret, &value, &n, err);
    if (r < 0)
        return r;
    bool fits = n < sizeof(c->secret) && strlen(value) == n;
    if (fits)
        memcpy(c->secret, value, n + 1);
    explicit_bzero(value, n);
    free(value);
    c->version = BUCKET_VERSION;
    c->path_style = b->path_style;
    memcpy(c->bucket, b->bucket, sizeof(c->bucket));
    memcpy(c->prefix, b->prefix, sizeof(c->prefix));
    memcpy(c->region, b->region, sizeof(c->region));
    memcpy(c->access_key, b->access_key, sizeof(c->access_key));
    (void)snprintf(c->opened, sizeof(c->opened), "%s", core->egress_open);
    if (!fits || read_endpoint(b->endpoint, c) < 0 || !bucket_config_valid(c))
        return err_fail(err, FAIL_BUCKET_UNREACHABLE,
                        "the value of secret '%s' is no half of a key", b->secret);
    return 0;
}

static int open_config(struct core *core, const char *owner, const struct bucket *b,
                       struct err *err)
{
    struct bucket_config c = { 0 };
    _cleanup_fd_ int fd = memfd_create("bucket", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return err_set(err, errno, "cannot make a memory file");
    int r = write_config(core, owner, b, &c, err);
    if (r >= 0) {
        r = fd_write_full(fd, &c, sizeof(c));
        if (r < 0)
            (void)err_set(err, -r, "cannot write a memory file");
    }
    explicit_bzero(&c, sizeof(c));
    return r < 0 ? r : take_fd(fd);
}

/* Not for longer than the daemon lives: the store's silence must not keep it. */
static int ask_once(struct core *core, const struct keeper_request *q, int config, struct err *err)
{
    struct keeper_reply reply = { 0 };
    _cleanup_fd_ int fd = -1;
    int r = keeper_ask_begin(core, q, &config, 1, &fd, err);
    if (r < 0)
        return r;
    while (fd_wait(fd, POLLIN, LOOK_MS) == 0)
        if (atomic_load(&core->stopping))
            return err_set(err, ECANCELED, "the daemon is ending");
    r = keeper_ask_next(fd, &reply);
    return r < 0 ? r : keeper_ask_result(&reply, err);
}

int bucket_attach(struct core *core, const char *owner, const struct bucket *b, const char *cell,
                  const char *volume, const char *path, bool read_only, struct err *err)
{
    struct keeper_request q = { .version = KEEPER_VERSION,
                                .op = KEEPER_ATTACH_BUCKET,
                                .read_only = read_only || b->read_only };
    memcpy(q.id, cell, ID_SIZE);
    memcpy(q.volume, volume, ID_SIZE);
    if (!copy_text(path, q.path, sizeof(q.path)))
        return err_set(err, ENAMETOOLONG, "'%s' is too long", path);
    _cleanup_fd_ int config = open_config(core, owner, b, err);
    if (config < 0)
        return config;
    int r = -ECONNRESET;
    for (int i = 0; i < TRIES && r == -ECONNRESET; i++)
        r = ask_once(core, &q, config, err);
    return r < 0 && !(err && err->code) ? err_set(err, -r, "the keeper does not answer") : r;
}
