#include "front/http/uri.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"

/* Decode p[0..n) in place and terminate it; the place after p[n - 1] is ours too. */
static int decode(char *p, size_t n, bool plus_is_space)
{
    size_t o = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '%') {
            int byte = hex_percent(p + i, n - i);
            if (byte <= 0)
                return -EINVAL;
            c = (char)byte;
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        p[o++] = c;
    }
    p[o] = '\0';
    return utf8_valid(p, o) ? 0 : -EILSEQ;
}

static int parse_path(struct uri *u, char *path, char *end, struct err *err)
{
    char *at = path + 1; /* past the first '/' */
    while (at <= end) {
        char *slash = memchr(at, '/', (size_t)(end - at));
        char *stop = slash ? slash : end;
        if (u->nsegments == URI_SEGMENTS_MAX)
            return err_fail_as(err, ENAMETOOLONG, FAIL_INVALID_PATH, "the path has too many parts");
        if (decode(at, (size_t)(stop - at), false) < 0)
            return err_fail(err, FAIL_INVALID_PATH,
                            "the path has a bad %%-escape, a NUL or text that is not UTF-8");
        u->segments[u->nsegments++] = at;
        at = stop + 1;
    }
    return 0;
}

static int parse_query(struct uri *u, char *at, char *end, struct err *err)
{
    while (at < end) {
        char *amp = memchr(at, '&', (size_t)(end - at));
        char *stop = amp ? amp : end;
        char *equals = memchr(at, '=', (size_t)(stop - at));
        char *value = equals ? equals + 1 : stop;
        size_t value_len = (size_t)(stop - value);
        if (stop > at) {
            if (u->nparams == URI_PARAMS_MAX)
                return err_fail_as(err, E2BIG, FAIL_INVALID_QUERY,
                                   "the query has too many parameters");
            /* The value first: terminating the name may overwrite the '='. */
            if (decode(value, value_len, true) < 0 ||
                (equals && decode(at, (size_t)(equals - at), true) < 0) ||
                (!equals && decode(at, (size_t)(stop - at), true) < 0))
                return err_fail(err, FAIL_INVALID_QUERY,
                                "the query has a bad %%-escape, a NUL or text that is not UTF-8");
            u->params[u->nparams++] = (struct uri_param){ at, equals ? value : "" };
        }
        at = stop + 1;
    }
    return 0;
}

int uri_parse(const char *target, size_t n, struct uri *ret_uri, struct err *err)
{
    if (n > URI_MAX)
        return err_fail_as(err, ENAMETOOLONG, FAIL_INVALID_PATH,
                           "the request target is over %d bytes", URI_MAX);
    if (n == 0 || target[0] != '/')
        return err_fail(err, FAIL_INVALID_PATH, "the request target must begin with '/'");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)target[i] <= ' ' || target[i] == 0x7f || target[i] == '#')
            return err_fail(err, FAIL_INVALID_PATH,
                            "the request target holds a character that must be %%-escaped");

    struct uri u = { .text = malloc(n + 1) };
    if (!u.text)
        return err_set(err, ENOMEM, "cannot allocate a request target");
    memcpy(u.text, target, n);
    u.text[n] = '\0';
    char *end = u.text + n, *mark = memchr(u.text, '?', n);
    int r = parse_path(&u, u.text, mark ? mark : end, err);
    if (r >= 0 && mark)
        r = parse_query(&u, mark + 1, end, err);
    if (r < 0) {
        free(u.text);
        return r;
    }
    *ret_uri = u;
    return 0;
}

void uri_done(struct uri *uri)
{
    free(uri->text);
    uri->text = NULL;
    uri->nsegments = uri->nparams = 0;
}

const char *uri_param(const struct uri *uri, const char *name)
{
    for (size_t i = 0; i < uri->nparams; i++)
        if (strcmp(uri->params[i].name, name) == 0)
            return uri->params[i].value;
    return NULL;
}
