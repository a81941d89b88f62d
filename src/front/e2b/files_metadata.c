/* What a client wants to be remembered with a file it writes. */
#include <errno.h>
#include <string.h>

#include "front/e2b/entry.h"
#include "front/e2b/files.h"

#define KEY_MAX 246 /* an attribute's name has 255 bytes, and its beginning is ours */
#define TOTAL_MAX 4096

struct reading {
    struct pairs *pairs;
    size_t total;
    struct err *err;
};

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static int take(void *arg, const char *rest, const char *value)
{
    struct reading *rd = arg;
    char key[KEY_MAX + 1];
    size_t n = strlen(rest);
    rd->total += n + strlen(value);
    if (n == 0 || n > KEY_MAX || !is_printable(rest))
        return err_fail(rd->err, FAIL_INVALID_REQUEST,
                        "the name of metadata must have 1 to %d printable characters", KEY_MAX);
    if (!is_printable(value))
        return err_fail(rd->err, FAIL_INVALID_REQUEST,
                        "the metadata '%.64s' has a character that is not printable ASCII", rest);
    if (rd->total > TOTAL_MAX)
        return err_fail(rd->err, FAIL_INVALID_REQUEST, "metadata has over %d bytes in all",
                        TOTAL_MAX);
    for (size_t i = 0; i <= n; i++)
        key[i] = (char)(rest[i] >= 'A' && rest[i] <= 'Z' ? rest[i] | 0x20 : rest[i]);
    int r = pairs_add(rd->pairs, key, value);
    return r < 0 ? err_set(rd->err, -r, "cannot allocate metadata") : 0;
}

int files_metadata_read(struct request *req, struct pairs *ret_pairs, struct err *err)
{
    struct reading rd = { .pairs = ret_pairs, .err = err };
    return request_headers_with(req, "X-Metadata-", take, &rd);
}

static bool is_unsupported(const struct err *err)
{
    return err->failure == FAIL_NOT_SUPPORTED;
}

/* What it had before and shall not have any more. */
static int drop_old(const struct envd *envd, const char *path, const struct pairs *pairs,
                    struct err *err)
{
    _cleanup_(file_entry_done) struct file_entry e = { 0 };
    struct file_ask ask = entry_ask(envd, WIRE_FILE_STAT, &path);
    ask.flags |= WIRE_F_XATTRS;
    int r = file_do(envd->core, &envd->s, &ask, &e, NULL, err);
    for (size_t i = 0; r >= 0 && i < e.n_xattrs; i++) {
        const char *name = e.xattrs[i].name;
        if (strncmp(name, FILES_METADATA, strlen(FILES_METADATA)) != 0 ||
            pairs_get(pairs, name + strlen(FILES_METADATA)))
            continue;
        ask = entry_ask(envd, WIRE_FILE_XATTR_RM, &path);
        ask.text = name;
        r = file_do(envd->core, &envd->s, &ask, NULL, NULL, err);
    }
    return r;
}

static int put(const struct envd *envd, const char *path, const char *key, const char *value,
               struct err *err)
{
    _cleanup_free_ char *name = NULL;
    if (asprintf(&name, FILES_METADATA "%s", key) < 0)
        return err_set(err, ENOMEM, "cannot allocate metadata");
    struct file_xattr x = { name, (char *)(uintptr_t)value, strlen(value) };
    struct file_ask ask = entry_ask(envd, WIRE_FILE_XATTR_SET, &path);
    ask.xattr = &x;
    return file_do(envd->core, &envd->s, &ask, NULL, NULL, err);
}

int files_metadata_set(const struct envd *envd, const char *path, bool fresh,
                       const struct pairs *pairs, struct err *err)
{
    struct err why = ERR_INIT;
    int r = fresh ? 0 : drop_old(envd, path, pairs, &why);
    for (size_t i = 0; r >= 0 && i < pairs->n; i++)
        r = put(envd, path, pairs->names[i], pairs->values[i], &why);
    if (r < 0 && is_unsupported(&why))
        return 0;
    if (r < 0)
        *err = why;
    return r;
}
