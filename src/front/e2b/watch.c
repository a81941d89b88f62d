/* WatchDir: what happens in a directory, as a stream. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "front/e2b/entry.h"

struct watcher {
    struct envd envd;
    struct file_call *call;
    char *top; /* what is watched, as the sandbox sees it */
    int fd, keepalive_ms;
    int64_t deadline_ms; /* monotonic; 0: none */
    bool json, with_entry, ended;
};

static void watcher_free(void *arg)
{
    struct watcher *w = arg;
    file_call_free(w->call);
    envd_leave(&w->envd);
    free(w->top);
    free(w);
}

static int put_start(struct watcher *w, struct buf *out)
{
    Filesystem__WatchDirResponse m = FILESYSTEM__WATCH_DIR_RESPONSE__INIT;
    Filesystem__WatchDirResponse__StartEvent start =
        FILESYSTEM__WATCH_DIR_RESPONSE__START_EVENT__INIT;
    m.event_case = FILESYSTEM__WATCH_DIR_RESPONSE__EVENT_START;
    m.start = &start;
    return connect_put(out, w->json, &m.base);
}

static int put_keepalive(struct watcher *w, struct buf *out)
{
    Filesystem__WatchDirResponse m = FILESYSTEM__WATCH_DIR_RESPONSE__INIT;
    Filesystem__WatchDirResponse__KeepAlive alive =
        FILESYSTEM__WATCH_DIR_RESPONSE__KEEP_ALIVE__INIT;
    m.event_case = FILESYSTEM__WATCH_DIR_RESPONSE__EVENT_KEEPALIVE;
    m.keepalive = &alive;
    return connect_put(out, w->json, &m.base);
}

static Filesystem__EventType type_of(enum wire_change change)
{
    switch (change) {
    case WIRE_CREATED:
    case WIRE_RENAMED_TO: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CREATE;
    case WIRE_WRITTEN: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_WRITE;
    case WIRE_REMOVED: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_REMOVE;
    case WIRE_RENAMED_FROM: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_RENAME;
    case WIRE_ATTRIBUTES: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CHMOD;
    case WIRE_OVERFLOW: break;
    }
    return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_UNSPECIFIED;
}

static int put_change(struct watcher *w, struct buf *out, const struct file_event *ev)
{
    Filesystem__FilesystemEvent change = FILESYSTEM__FILESYSTEM_EVENT__INIT;
    Filesystem__WatchDirResponse m = FILESYSTEM__WATCH_DIR_RESPONSE__INIT;
    _cleanup_(entry_done) struct entry entry = { 0 };
    change.type = type_of(ev->change);
    if (!change.type || !ev->entry.path)
        return 0;
    change.name = (char *)(uintptr_t)entry_name_below(w->top, ev->entry.path);
    bool there =
        ev->entry.type != 0 && ev->change != WIRE_REMOVED && ev->change != WIRE_RENAMED_FROM;
    if (w->with_entry && there && entry_fill(&w->envd, &ev->entry, &entry) >= 0) {
        change.has_entry_case = FILESYSTEM__FILESYSTEM_EVENT__HAS_ENTRY_ENTRY;
        change.entry = &entry.info;
    }
    m.event_case = FILESYSTEM__WATCH_DIR_RESPONSE__EVENT_FILESYSTEM;
    m.filesystem = &change;
    return connect_put(out, w->json, &m.base);
}

static int next(void *arg, struct buf *out)
{
    struct watcher *w = arg;
    struct file_event ev;
    struct err err = ERR_INIT;
    if (w->ended)
        return 0;
    int wait_ms = w->keepalive_ms;
    int64_t left_ms = w->deadline_ms ? w->deadline_ms - clock_mono_ms() : wait_ms;
    bool last = left_ms < wait_ms;
    if (left_ms <= 0) {
        w->ended = true;
        int end = connect_put_end(out, RPC_DEADLINE_EXCEEDED, "the watch's time has passed");
        return end < 0 ? end : 1;
    }
    int r = file_next(w->call, last ? (int)left_ms : wait_ms, w->fd, &ev, &err);
    if (r == -ETIMEDOUT) {
        r = last ? 0 : put_keepalive(w, out);
        return r < 0 ? r : 1;
    }
    if (r < 0 && err.failure == FAIL_FILE_NOT_FOUND) { /* it was removed */
        w->ended = true;
        r = connect_put_end(out, RPC_OK, NULL);
        return r < 0 ? r : 1;
    }
    if (r < 0)
        return r;
    if (ev.type == FILE_READY)
        r = put_start(w, out);
    else if (ev.type == FILE_CHANGE)
        r = put_change(w, out, &ev);
    file_event_done(&ev);
    return r < 0 ? r : 1;
}

int envd_fs_watch_dir(struct request *req, struct err *err)
{
    static const struct reply_source source = { next, watcher_free };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    struct watcher *w = calloc(1, sizeof(*w));
    if (!w)
        return err_set(err, ENOMEM, "cannot allocate a watch");
    int r = envd_begin(req, &filesystem__watch_dir_request__descriptor, true, &w->envd, &call, err);
    if (r != 0) {
        watcher_free(w);
        return r < 0 ? r : 0;
    }
    const Filesystem__WatchDirRequest *q = (const Filesystem__WatchDirRequest *)call.msg;
    const char *path = q->path;
    struct file_ask ask = entry_ask(&w->envd, WIRE_FILE_WATCH, &path);
    ask.flags |= (q->recursive ? WIRE_F_RECURSIVE : 0) | (q->include_entry ? WIRE_F_XATTRS : 0);
    w->fd = req->fd;
    w->keepalive_ms = envd_keepalive_ms(req);
    w->json = call.json;
    w->with_entry = q->include_entry;
    int64_t timeout_ms = 0;
    r = envd_timeout_ms(req, &timeout_ms, err);
    w->deadline_ms = timeout_ms ? clock_mono_ms() + timeout_ms : 0;
    if (r >= 0)
        r = entry_find_dir(&w->envd, path, &w->top, err);
    if (r >= 0)
        r = file_begin(req->core, &w->envd.s, &ask, &w->call, err);
    if (r < 0) {
        r = envd_fail(&w->envd, &call, err);
        watcher_free(w);
        return r;
    }
    return reply_stream(req, connect_stream_type(call.json), &source, w);
}
