#include "front/native/paging.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#define CURSOR_MAX (PAGING_KEY_MAX * 4 / 3 + 4)

/* base64url, so that it fits into a query as it is. */
static void encode(const char *key, char out[CURSOR_MAX])
{
    size_t n = strlen(key), o = 0;
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)(unsigned char)key[i] << 16;
        v |= i + 1 < n ? (unsigned)(unsigned char)key[i + 1] << 8 : 0;
        v |= i + 2 < n ? (unsigned)(unsigned char)key[i + 2] : 0;
        out[o++] = digits[v >> 18 & 63];
        out[o++] = digits[v >> 12 & 63];
        if (i + 1 < n)
            out[o++] = digits[v >> 6 & 63];
        if (i + 2 < n)
            out[o++] = digits[v & 63];
    }
    out[o] = '\0';
}

static int decode(const char *text, char out[PAGING_KEY_MAX])
{
    unsigned v = 0, bits = 0;
    size_t o = 0;
    for (; *text; text++) {
        const char *at = strchr(digits, *text);
        if (!at)
            return -EINVAL;
        v = (v << 6 | (unsigned)(at - digits)) & 0xffff;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        out[o] = (char)(v >> bits & 0xff);
        if (out[o] == '\0' || ++o == PAGING_KEY_MAX)
            return -EINVAL;
    }
    out[o] = '\0';
    return o > 0 && bits < 6 ? 0 : -EINVAL;
}

int paging_read(const struct request *req, struct paging *ret_p, struct err *err)
{
    const char *cursor = uri_param(&req->uri, "cursor");
    uint64_t limit = PAGING_LIMIT;
    struct paging p = { 0 };

    int r = request_param_u64(req, "limit", 1, PAGING_LIMIT_MAX, &limit, err);
    if (r < 0)
        return r;
    if (cursor && decode(cursor, p.after) < 0)
        return err_fail(err, FAIL_INVALID_QUERY, "'cursor' is not one that an earlier list gave");
    p.limit = (unsigned)limit;
    *ret_p = p;
    return 0;
}

bool paging_takes(struct paging *p, const char *key)
{
    if (p->more || (p->after[0] && strcmp(key, p->after) <= 0))
        return false;
    if (p->taken == p->limit) {
        p->more = true;
        return false;
    }
    p->taken++;
    int n = snprintf(p->last, sizeof(p->last), "%s", key);
    return n >= 0;
}

void paging_put(const struct paging *p, struct jout *j)
{
    char cursor[CURSOR_MAX];
    if (p->more)
        encode(p->last, cursor);
    jout_str(j, "next_cursor", p->more ? cursor : NULL);
}
