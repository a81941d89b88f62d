#include "core/version.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/sha.h>
#include <string.h>

#include "base/buf.h"
#include "base/hex.h"
#include "core/spec.h"

#define TEXT_MAX (64u * 1024 * 1024)

/* Made from what there is rather than counted: it is the same after a restart, and nobody who
 * changes a sandbox can forget it. A PATCH that changes nothing still counts in `revision`. */
int sandbox_version(const struct sandbox *s, char out[SANDBOX_VERSION_SIZE])
{
    _cleanup_free_ char *spec = spec_to_json(&s->spec, false);
    _cleanup_(buf_done) struct buf b = BUF_INIT(TEXT_MAX);
    unsigned char hash[SHA256_DIGEST_LENGTH];
    if (!spec)
        return -ENOMEM;
    int r = buf_printf(&b, "%s %d %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s\n%s", s->id,
                       (int)s->state, (int)s->cause, s->created_ms, s->started_ms, s->stopped_ms,
                       s->expires_ms, s->spec.name ? s->spec.name : "", spec);
    if (r < 0)
        return r;
    (void)SHA256((const unsigned char *)b.data, b.len, hash);
    hex_encode(hash, (SANDBOX_VERSION_SIZE - 1) / 2, out);
    return 0;
}

static bool listed(const char *versions, const char *version)
{
    size_t len = strlen(version);
    for (const char *p = versions; *p;) {
        p += strspn(p, " ");
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, version, n) == 0)
            return true;
        p += n;
    }
    return false;
}

int version_check(struct core *core, const struct box *b, const char *versions, struct err *err)
{
    char version[SANDBOX_VERSION_SIZE];
    if (!versions)
        return 0;
    (void)pthread_mutex_lock(&core->table.lock);
    int r = sandbox_version(&b->s, version);
    (void)pthread_mutex_unlock(&core->table.lock);
    if (r < 0)
        return err_set(err, -r, "cannot tell a sandbox's version");
    if (listed(versions, version))
        return 0;
    return err_fail(err, FAIL_PRECONDITION_FAILED,
                    "sandbox '%s' was changed meanwhile; read it again and decide anew", b->s.id);
}
