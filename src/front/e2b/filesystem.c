/* The files of a sandbox, for E2B's clients. */
#include <errno.h>
#include <string.h>

#include "front/e2b/entry.h"

#define ENTRIES_MAX 100000 /* of one ListDir */

/* Answer with one entry: these four messages are the same on the wire and in JSON. */
static int reply_entry(const struct envd *envd, const struct connect_call *call,
                       const struct file_entry *e)
{
    _cleanup_(entry_done) struct entry entry = { 0 };
    Filesystem__StatResponse answer = FILESYSTEM__STAT_RESPONSE__INIT;
    int r = entry_fill(envd, e, &entry);
    if (r < 0)
        return r;
    answer.entry = &entry.info;
    return connect_reply(call, &answer.base);
}

int envd_fs_stat(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };

    int r = envd_begin(req, &filesystem__stat_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const char *path = ((const Filesystem__StatRequest *)call.msg)->path;
    struct file_ask ask = entry_ask(&envd, WIRE_FILE_STAT, &path);
    ask.flags |= WIRE_F_NOFOLLOW | WIRE_F_XATTRS;
    r = file_do(req->core, &envd.s, &ask, &e, NULL, err);
    return r < 0 ? envd_fail(&envd, &call, err) : reply_entry(&envd, &call, &e);
}

/* What is there already is told as what it is: a directory is fine to most callers, a file is not. */
static void tell_apart(const struct envd *envd, const char *path, struct err *err)
{
    _cleanup_free_ char *top = NULL;
    struct err why = ERR_INIT;
    if (err->failure != FAIL_FILE_EXISTS)
        return;
    if (entry_find_dir(envd, path, &top, &why) < 0 && why.code == ENOTDIR)
        (void)err_fail(err, FAIL_NOT_A_DIRECTORY,
                       "path already exists but it is not a directory: %.200s", path);
}

int envd_fs_make_dir(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };

    int r = envd_begin(req, &filesystem__make_dir_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const char *path = ((const Filesystem__MakeDirRequest *)call.msg)->path;
    struct file_ask ask = entry_ask(&envd, WIRE_FILE_MKDIR, &path);
    ask.flags |= WIRE_F_EXCLUSIVE;
    r = file_do(req->core, &envd.s, &ask, &e, NULL, err);
    if (r < 0)
        tell_apart(&envd, path, err);
    return r < 0 ? envd_fail(&envd, &call, err) : reply_entry(&envd, &call, &e);
}

int envd_fs_move(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(file_entry_done) struct file_entry e = { 0 };

    int r = envd_begin(req, &filesystem__move_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const Filesystem__MoveRequest *q = (const Filesystem__MoveRequest *)call.msg;
    const char *path = q->source;
    struct file_ask ask = entry_ask(&envd, WIRE_FILE_MOVE, &path);
    ask.to = q->destination;
    ask.flags |= WIRE_F_XATTRS;
    r = file_do(req->core, &envd.s, &ask, &e, NULL, err);
    return r < 0 ? envd_fail(&envd, &call, err) : reply_entry(&envd, &call, &e);
}

int envd_fs_remove(struct request *req, struct err *err)
{
    static const Filesystem__RemoveResponse none = FILESYSTEM__REMOVE_RESPONSE__INIT;
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };

    int r = envd_begin(req, &filesystem__remove_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const char *path = ((const Filesystem__RemoveRequest *)call.msg)->path;
    struct file_ask ask = entry_ask(&envd, WIRE_FILE_REMOVE, &path);
    ask.flags |= WIRE_F_RECURSIVE | WIRE_F_FORCE;
    r = file_do(req->core, &envd.s, &ask, NULL, NULL, err);
    return r < 0 ? envd_fail(&envd, &call, err) : connect_reply(&call, &none.base);
}

/* ---- listing ---- */

struct listing {
    struct entry *entries;
    Filesystem__EntryInfo **pointers;
    size_t n, room;
};

static void listing_done(struct listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        entry_done(&l->entries[i]);
    free(l->entries);
    free(l->pointers);
}

static int listing_add(struct listing *l, const struct envd *envd, const struct file_entry *e)
{
    if (l->n == l->room) {
        size_t room = l->room ? l->room * 2 : 64;
        struct entry *entries =
            l->n < ENTRIES_MAX ? reallocarray(l->entries, room, sizeof(*entries)) : NULL;
        if (!entries)
            return l->n < ENTRIES_MAX ? -ENOMEM : -EMSGSIZE;
        l->entries = entries;
        l->room = room;
    }
    return entry_fill(envd, e, &l->entries[l->n++]);
}

/* Entries point into themselves (their time, their permissions), and the array moved as it grew:
 * point anew now that it stays. */
static int listing_settle(struct listing *l)
{
    l->pointers = calloc(l->n + 1, sizeof(*l->pointers));
    if (!l->pointers)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        struct entry *e = &l->entries[i];
        e->info.modified_time = &e->time;
        e->info.permissions = e->permissions;
        l->pointers[i] = &e->info;
    }
    return 0;
}

static int read_listing(const struct envd *envd, const struct connect_call *call, struct listing *l,
                        struct err *err)
{
    _cleanup_(file_call_freep) struct file_call *walk = NULL;
    const Filesystem__ListDirRequest *q = (const Filesystem__ListDirRequest *)call->msg;
    const char *path = q->path;
    struct file_ask ask = entry_ask(envd, WIRE_FILE_LIST, &path);
    ask.depth = q->depth ? q->depth : 1;
    ask.limit = ENTRIES_MAX;
    ask.flags |= WIRE_F_XATTRS;
    int r = file_begin(envd->core, &envd->s, &ask, &walk, err);
    while (r >= 0) {
        struct file_event ev;
        r = file_next(walk, -1, call->req->fd, &ev, err);
        if (r < 0)
            break;
        bool done = ev.type == FILE_DONE;
        if (ev.type == FILE_ENTRY)
            r = listing_add(l, envd, &ev.entry);
        file_event_done(&ev);
        if (done)
            return listing_settle(l);
        if (r < 0)
            return err_set(err, -r, "the directory is too large to be listed at once");
    }
    return r;
}

int envd_fs_list_dir(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(listing_done) struct listing l = { 0 };

    int r = envd_begin(req, &filesystem__list_dir_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = read_listing(&envd, &call, &l, err);
    if (r < 0)
        return envd_fail(&envd, &call, err);
    Filesystem__ListDirResponse answer = FILESYSTEM__LIST_DIR_RESPONSE__INIT;
    answer.entries = l.pointers;
    answer.n_entries = l.n;
    return connect_reply(&call, &answer.base);
}
