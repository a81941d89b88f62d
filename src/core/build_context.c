#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/path.h"
#include "core/build_private.h"

/* What stands below a stage that begins from nothing: a layer without an entry. */
static int make_scratch(struct build *b, struct err *err)
{
    static const char empty[1024]; /* the end of a tar, and nothing before it */
    char digest[DIGEST_SIZE];
    int r = blob_put(b->core, empty, sizeof(empty), digest, err);
    if (r < 0)
        return r;
    return image_add_layer(b->core, &b->hold.room, "", digest, OCI_LAYER, NULL, &b->scratch, err);
}

int build_context_make(struct build *b, struct err *err)
{
    int r = make_scratch(b, err);
    return r < 0 ? r : build_cell_make(b, b->scratch.tree, false, &b->context, err);
}

int build_context_begin(struct build *b, const char *path, struct err *err)
{
    struct file_ask ask = { .op = WIRE_FILE_TREE_IN, .paths = &path, .n_paths = 1 };
    struct file_call *call = NULL;
    int r = file_begin(b->core, &b->context.s, &ask, &call, err);
    return r < 0 ? r : archiver_unpack(b->core, call, "auto", &b->unpacking, err);
}

int build_context_open(struct build *b, struct err *err)
{
    int r = build_context_make(b, err);
    return r < 0 ? r : build_context_begin(b, BUILD_CONTEXT_DIR, err);
}

int build_context_close(struct build *b, struct err *err)
{
    int r = 0;
    for (bool done = false; b->unpacking && !done && r >= 0;) {
        struct file_event ev;
        r = archiver_next(b->unpacking, b->alive[0], &ev, err);
        if (r < 0)
            break;
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    archiver_free(b->unpacking);
    b->unpacking = NULL;
    return r < 0 ? err_wrap(err, r, "the context cannot be unpacked") : 0;
}

/* 1 and the whole of a file; 0: it is not there. */
static int read_text(struct build *b, const char *name, struct buf *out, struct err *err)
{
    char path[PATH_MAX];
    const char *const paths = path;
    int n = snprintf(path, sizeof(path), BUILD_CONTEXT_DIR "/%s", name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_fail_as(err, ENAMETOOLONG, FAIL_INVALID_QUERY, "a name is too long");
    struct file_ask ask = { .op = WIRE_FILE_READ, .paths = &paths, .n_paths = 1 };
    _cleanup_(file_call_freep) struct file_call *call = NULL;
    int r = file_begin(b->core, &b->context.s, &ask, &call, err);
    for (bool done = false; r >= 0 && !done;) {
        struct file_event ev;
        r = file_next(call, -1, b->alive[0], &ev, err);
        if (r < 0)
            return r == -ENOENT ? 0 : r;
        if (ev.type == FILE_DATA && buf_append(out, ev.data, ev.len) < 0)
            r = err_fail_as(err, EFBIG, FAIL_INVALID_DOCKERFILE, "'%.100s' is too large", name);
        done = ev.type == FILE_DONE;
        file_event_done(&ev);
    }
    return r < 0 ? r : 1;
}

/* The Dockerfile's own rules, or the context's. */
static int read_rules(struct build *b, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(IGNORE_FILE_MAX);
    char own[PATH_MAX];
    int n = snprintf(own, sizeof(own), "%s" IGNORE_FILE, b->dockerfile_name);
    int r = n > 0 && (size_t)n < sizeof(own) ? read_text(b, own, &text, err) : 0;
    if (r == 0)
        r = read_text(b, IGNORE_FILE, &text, err);
    if (r <= 0)
        return r;
    return ignore_parse(text.data ? text.data : "", text.len, &b->ignore, err);
}

int build_context_read(struct build *b, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(DOCKERFILE_MAX);
    int r = buf_puts(&text, b->dockerfile_name);
    if (r >= 0)
        r = buf_reserve(&text, 2);
    if (r < 0)
        return err_set(err, -r, "cannot keep a name");
    path_clean(text.data);
    if (text.data[0] == '/' || strncmp(text.data, "..", 2) == 0)
        return err_fail(err, FAIL_INVALID_QUERY, "the Dockerfile '%.100s' must lie in the context",
                        b->dockerfile_name);
    buf_clear(&text);
    r = read_text(b, b->dockerfile_name, &text, err);
    if (r == 0)
        return err_fail_as(err, ENOENT, FAIL_INVALID_DOCKERFILE,
                           "there is no '%.100s' in the context", b->dockerfile_name);
    if (r >= 0)
        r = dockerfile_parse(text.data ? text.data : "", text.len, &b->file, &b->line, err);
    if (r >= 0)
        r = read_rules(b, err);
    return r;
}
