/* CreateWatcher, GetWatcherEvents, RemoveWatcher: a directory watched between calls, for clients
 * that hold no stream open. The core keeps the watch; its note is ours: with or without entries,
 * and the directory. */
#include <errno.h>
#include <string.h>

#include "core/watches.h"
#include "front/e2b/entry.h"

#define WITH_ENTRY 'e'
#define WITHOUT_ENTRY '-'
#define ID_PREFIX "w"

int envd_fs_create_watcher(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_free_ char *top = NULL, *note = NULL;
    uint64_t n = 0;
    char id[32];

    int r =
        envd_begin(req, &filesystem__create_watcher_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const Filesystem__CreateWatcherRequest *q = (const Filesystem__CreateWatcherRequest *)call.msg;
    uint64_t flags = WIRE_F_FOR_USER | (q->recursive ? WIRE_F_RECURSIVE : 0) |
                     (q->include_entry ? WIRE_F_XATTRS : 0);
    r = entry_find_dir(&envd, q->path, &top, err);
    if (r >= 0 && asprintf(&note, "%c%s", q->include_entry ? WITH_ENTRY : WITHOUT_ENTRY, top) < 0)
        r = err_set(err, ENOMEM, "cannot allocate a watch");
    if (r >= 0)
        r = watches_add(req->core, &envd.s, *envd.user ? envd.user : NULL, top, flags, note, &n,
                        err);
    if (r < 0)
        return envd_fail(&envd, &call, err);
    Filesystem__CreateWatcherResponse answer = FILESYSTEM__CREATE_WATCHER_RESPONSE__INIT;
    (void)snprintf(id, sizeof(id), ID_PREFIX "%llu", (unsigned long long)n);
    answer.watcher_id = id;
    return connect_reply(&call, &answer.base);
}

/* 0: it is none of ours. */
static uint64_t number_of(const char *id)
{
    size_t prefix = strlen(ID_PREFIX);
    char *end = NULL;
    if (strncmp(id, ID_PREFIX, prefix) != 0 || id[prefix] < '1' || id[prefix] > '9')
        return 0;
    errno = 0;
    unsigned long long n = strtoull(id + prefix, &end, 10);
    return errno || *end ? 0 : n;
}

static int not_found(const char *id, struct err *err)
{
    return err_fail(err, FAIL_WATCH_NOT_FOUND, "watcher with id %.64s not found", id);
}

/* ---- events ---- */

/* What a poll gave, as messages: each change is one event, a rename two. */
struct batch {
    Filesystem__FilesystemEvent *events, **pointers;
    struct entry *entries;
    size_t n, n_entries;
};

static void batch_done(struct batch *b)
{
    for (size_t i = 0; i < b->n_entries; i++)
        entry_done(&b->entries[i]);
    free(b->events);
    free(b->pointers);
    free(b->entries);
}

static int batch_init(struct batch *b, size_t changes)
{
    size_t room = 2 * changes + 1;
    b->events = calloc(room, sizeof(*b->events));
    b->pointers = calloc(room, sizeof(*b->pointers));
    b->entries = calloc(room, sizeof(*b->entries));
    return b->events && b->pointers && b->entries ? 0 : -ENOMEM;
}

static Filesystem__FilesystemEvent *add(struct batch *b, Filesystem__EventType type,
                                        const char *name)
{
    Filesystem__FilesystemEvent *e = &b->events[b->n];
    filesystem__filesystem_event__init(e);
    e->type = type;
    e->name = (char *)(uintptr_t)name;
    b->pointers[b->n++] = e;
    return e;
}

static Filesystem__EventType type_of(enum file_change_type type)
{
    switch (type) {
    case FILE_CREATED: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CREATE;
    case FILE_WRITTEN: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_WRITE;
    case FILE_REMOVED: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_REMOVE;
    case FILE_RENAMED: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_RENAME;
    case FILE_ATTRIBUTES: return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CHMOD;
    case FILE_OVERFLOW: break;
    }
    return FILESYSTEM__EVENT_TYPE__EVENT_TYPE_UNSPECIFIED;
}

static void add_change(struct batch *b, const struct envd *envd, const char *note,
                       const struct file_change *c)
{
    const char *top = note + 1;
    if (c->type == FILE_OVERFLOW || !c->path)
        return;
    Filesystem__FilesystemEvent *e = add(b, type_of(c->type), entry_name_below(top, c->path));
    if (c->to)
        e = add(b, FILESYSTEM__EVENT_TYPE__EVENT_TYPE_CREATE, entry_name_below(top, c->to));
    if (note[0] != WITH_ENTRY || !c->entry.path)
        return;
    struct entry *entry = &b->entries[b->n_entries++];
    if (entry_fill(envd, &c->entry, entry) < 0)
        return; /* told without it */
    e->has_entry_case = FILESYSTEM__FILESYSTEM_EVENT__HAS_ENTRY_ENTRY;
    e->entry = &entry->info;
}

int envd_fs_get_watcher_events(struct request *req, struct err *err)
{
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };
    _cleanup_(watches_batch_done) struct watches_batch polled = { 0 };
    _cleanup_(batch_done) struct batch b = { 0 };

    int r = envd_begin(req, &filesystem__get_watcher_events_request__descriptor, false, &envd,
                       &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const char *id = ((const Filesystem__GetWatcherEventsRequest *)call.msg)->watcher_id;
    uint64_t n = number_of(id);
    r = n ? watches_poll(req->core, envd.s.id, n, 0, req->fd, &polled, err) : not_found(id, err);
    if (r >= 0 && !polled.note)
        r = not_found(id, err); /* another dialect's */
    if (r >= 0 && batch_init(&b, polled.n) < 0)
        r = err_set(err, ENOMEM, "cannot allocate events");
    if (r < 0)
        return envd_fail(&envd, &call, err);
    for (size_t i = 0; i < polled.n; i++)
        add_change(&b, &envd, polled.note, &polled.changes[i]);
    Filesystem__GetWatcherEventsResponse answer = FILESYSTEM__GET_WATCHER_EVENTS_RESPONSE__INIT;
    answer.events = b.pointers;
    answer.n_events = b.n;
    return connect_reply(&call, &answer.base);
}

int envd_fs_remove_watcher(struct request *req, struct err *err)
{
    static const Filesystem__RemoveWatcherResponse none = FILESYSTEM__REMOVE_WATCHER_RESPONSE__INIT;
    _cleanup_(envd_leave) struct envd envd = { 0 };
    _cleanup_(connect_done) struct connect_call call = { 0 };

    int r =
        envd_begin(req, &filesystem__remove_watcher_request__descriptor, false, &envd, &call, err);
    if (r != 0)
        return r < 0 ? r : 0;
    const char *id = ((const Filesystem__RemoveWatcherRequest *)call.msg)->watcher_id;
    uint64_t n = number_of(id);
    r = n ? watches_remove(req->core, envd.s.id, n, err) : not_found(id, err);
    return r < 0 ? envd_fail(&envd, &call, err) : connect_reply(&call, &none.base);
}
