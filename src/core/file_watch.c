#include "core/file_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define HALF_MS 50 /* the other half of a rename follows at once, or not at all */

struct file_watch {
    struct file_call *call;
    struct file_event half, ahead; /* a rename's first half; what came instead of its second */
    bool has_half, has_ahead;
};

const char *file_change_name(enum file_change_type type)
{
    static const char *const names[] = {
        [FILE_CREATED] = "create", [FILE_WRITTEN] = "write",    [FILE_REMOVED] = "remove",
        [FILE_RENAMED] = "rename", [FILE_ATTRIBUTES] = "chmod", [FILE_OVERFLOW] = "overflow"
    };
    return names[type];
}

void file_change_done(struct file_change *c)
{
    free(c->path);
    free(c->to);
    file_entry_done(&c->entry);
    *c = (struct file_change){ 0 };
}

int file_watch_open(struct core *core, const struct sandbox *s, const char *user, const char *path,
                    uint64_t flags, int hangup_fd, struct file_watch **ret_w, struct err *err)
{
    _cleanup_(file_watch_freep) struct file_watch *w = calloc(1, sizeof(*w));
    struct file_event ev;
    struct file_ask ask = {
        .op = WIRE_FILE_WATCH, .user = user, .paths = &path, .n_paths = 1, .flags = flags
    };
    if (!w)
        return err_set(err, ENOMEM, "cannot allocate a watch");
    int r = file_begin(core, s, &ask, &w->call, err);
    if (r >= 0)
        r = file_next(w->call, -1, hangup_fd, &ev, err);
    if (r < 0)
        return r;
    file_event_done(&ev);
    if (ev.type != FILE_READY)
        return err_set(err, EPROTO, "the sandbox's init does not say that it watches");
    *ret_w = take_ptr(w);
    return 0;
}

/* Takes the event's entry. */
static void tell(struct file_event *ev, enum file_change_type type, struct file_change *ret_c)
{
    *ret_c = (struct file_change){ .type = type, .time_ms = clock_now_ms() };
    if (type == FILE_REMOVED || type == FILE_OVERFLOW || !ev->entry.type) {
        ret_c->path = take_ptr(ev->entry.path);
        file_event_done(ev);
        return;
    }
    ret_c->path = ev->entry.path ? strdup(ev->entry.path) : NULL;
    ret_c->entry = ev->entry;
}

static enum file_change_type type_of(enum wire_change change)
{
    switch (change) {
    case WIRE_CREATED:
    case WIRE_RENAMED_TO: return FILE_CREATED;
    case WIRE_WRITTEN: return FILE_WRITTEN;
    case WIRE_REMOVED:
    case WIRE_RENAMED_FROM: return FILE_REMOVED;
    case WIRE_ATTRIBUTES: return FILE_ATTRIBUTES;
    case WIRE_OVERFLOW: return FILE_OVERFLOW;
    }
    return FILE_OVERFLOW;
}

static int receive(struct file_watch *w, int timeout_ms, int hangup_fd, struct file_event *ret_ev,
                   struct err *err)
{
    int r = file_next(w->call, timeout_ms, hangup_fd, ret_ev, err);
    if (r > 0 && (ret_ev->type != FILE_CHANGE || !ret_ev->change)) {
        file_event_done(ret_ev);
        return err_set(err, EPROTO, "the sandbox's init told of something that is no change");
    }
    return r;
}

/* The half that waits, and what came after it: one change if they belong together. */
static void join(struct file_watch *w, struct file_event *ev, struct file_change *ret_c)
{
    w->has_half = false;
    if (ev && ev->change == WIRE_RENAMED_TO && ev->cookie == w->half.cookie) {
        tell(ev, FILE_RENAMED, ret_c);
        ret_c->to = ret_c->path;
        ret_c->path = take_ptr(w->half.entry.path);
        file_event_done(&w->half);
        return;
    }
    if (ev) {
        w->ahead = *ev;
        w->has_ahead = true;
    }
    tell(&w->half, FILE_REMOVED, ret_c);
}

int file_watch_next(struct file_watch *w, int timeout_ms, int hangup_fd, struct file_change *ret_c,
                    struct err *err)
{
    for (;;) {
        struct file_event ev;
        int r = 1;
        if (w->has_ahead) {
            ev = w->ahead;
            w->has_ahead = false;
        } else {
            r = receive(w, w->has_half ? HALF_MS : timeout_ms, hangup_fd, &ev, err);
        }
        if (w->has_half && r != -ECANCELED) {
            join(w, r > 0 ? &ev : NULL, ret_c);
            return 1; /* a failure will show again at the next receive */
        }
        if (r < 0)
            return r;
        if (ev.change == WIRE_RENAMED_FROM) {
            w->half = ev;
            w->has_half = true;
            continue;
        }
        tell(&ev, type_of(ev.change), ret_c);
        return 1;
    }
}

void file_watch_cancel(struct file_watch *w)
{
    (void)shutdown(file_call_fd(w->call), SHUT_RDWR);
}

void file_watch_free(struct file_watch *w)
{
    if (!w)
        return;
    if (w->has_half)
        file_event_done(&w->half);
    if (w->has_ahead)
        file_event_done(&w->ahead);
    file_call_free(w->call);
    free(w);
}
