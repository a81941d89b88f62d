#include "core/grant.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/secret.h"
#include "net/binding.h"

#define LOG_MODULE "secret"

bool grant_is_none(const char *bindings)
{
    return !bindings || !*bindings;
}

static int read_lines(const char *bindings, struct bindings *ret_bs, struct err *err)
{
    if (grant_is_none(bindings))
        return 0;
    int r = bindings_parse(bindings, strlen(bindings), ret_bs, err);
    return r == -E2BIG ? -EINVAL : r;
}

bool grant_intercepts(const char *bindings)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    if (read_lines(bindings, &bs, NULL) < 0)
        return false;
    for (size_t i = 0; i < bs.n; i++)
        if (bs.items[i].transparent)
            return true;
    return false;
}

bool grant_names(const char *bindings, const char *secret_name, const char *secret_id)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    /* Most name others, and the caller asks of many with a lock held. */
    if (grant_is_none(bindings) ||
        (!strcasestr(bindings, secret_name) && !strstr(bindings, secret_id)) ||
        read_lines(bindings, &bs, NULL) < 0)
        return false;
    for (size_t i = 0; i < bs.n; i++) {
        const char *secret = bs.items[i].secret;
        if (secret && (strcasecmp(secret, secret_name) == 0 || strcmp(secret, secret_id) == 0))
            return true;
    }
    return false;
}

/* ---- values ---- */

/* What people paste or pipe often ends in a line break, which is no part of it. */
static size_t trimmed(const char *value, size_t n)
{
    while (n && (value[n - 1] == '\n' || value[n - 1] == '\r'))
        n--;
    return n;
}

static void forget(struct binding *b)
{
    if (b->value)
        explicit_bzero(b->value, b->n_value);
    free(b->value);
    b->value = NULL;
    b->n_value = 0;
}

static int fill(struct core *core, const char *owner, struct binding *b, struct err *err)
{
    if (!b->secret)
        return 0;
    int r = secret_value(core, owner, b->secret, &b->value, &b->n_value, err);
    if (r < 0)
        return r;
    size_t n = trimmed(b->value, b->n_value);
    explicit_bzero(b->value + n, b->n_value - n);
    b->n_value = n;
    if (binding_carries(b, b->value, n))
        return 0;
    forget(b);
    return err_fail(err, FAIL_INVALID_BINDING,
                    "secret '%s' cannot go into a header: it is empty, begins or ends with a "
                    "blank, or has line breaks or other control characters in it",
                    b->secret);
}

int grant_check(struct core *core, const char *owner, const char *bindings, struct err *err)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    int r = read_lines(bindings, &bs, err);
    for (size_t i = 0; core && i < bs.n && r >= 0; i++)
        r = fill(core, owner, &bs.items[i], err);
    return r;
}

/* With room from the start: growing would leave copies behind. */
static int pack(const struct bindings *bs, struct buf *out)
{
    size_t room = BINDING_TEXT_MAX;
    for (size_t i = 0; i < bs->n; i++)
        room += BINDING_TEXT_MAX + 2 * bs->items[i].n_value;
    int r = buf_reserve(out, room < out->max ? room : out->max);
    return r < 0 ? r : bindings_pack(bs, out);
}

int grant_pack(struct core *core, const char *owner, const char *bindings, struct err *err)
{
    _cleanup_(bindings_done) struct bindings bs = BINDINGS_INIT;
    _cleanup_(buf_wipe) struct buf text = BUF_INIT(BINDINGS_PACKED_MAX);
    int r = read_lines(bindings, &bs, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < bs.n; i++) {
        struct err why = ERR_INIT;
        /* It stays without: the broker refuses what would need it. */
        if (fill(core, owner, &bs.items[i], &why) < 0)
            log_warn("a binding is without its value owner=%s err=\"%s\"", owner, why.msg);
    }
    _cleanup_fd_ int fd = memfd_create("bindings", MFD_CLOEXEC);
    r = fd < 0 ? -errno : pack(&bs, &text);
    if (r >= 0 && text.len)
        r = fd_write_full(fd, text.data, text.len);
    return r < 0 ? err_set(err, -r, "cannot pack the bindings") : take_fd(fd);
}
