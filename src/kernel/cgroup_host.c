/* The host: its hierarchies, and our root group in each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "kernel/cgroup_private.h"

#define GROUP_MODE 0755
#define BUSY_TRIES 20            /* milliseconds */
#define NO_LIMIT_V1 (1ull << 60) /* v1 shows the largest number of whole pages */

const char *const cgroup_names[CGROUP_CONTROLLERS] = { "memory", "cpu", "pids" };

static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t n = strlen(word);
    for (const char *p = list; *p;) {
        size_t len = strcspn(p, separators);
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len;
        p += strspn(p, separators);
    }
    return false;
}

int cgroup_open_group(int dirfd, const char *path, bool make)
{
    if (make && mkdirat(dirfd, path, GROUP_MODE) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int find_mounts(struct cgroup_host *h, struct err *err)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    if (!f)
        return err_set(err, errno, "cannot read /proc/self/mounts");
    struct mntent m;
    char line[4096];
    while (getmntent_r(f, &m, line, (int)sizeof(line))) {
        if (strcmp(m.mnt_type, "cgroup2") == 0 && h->parents[CGROUP_CONTROLLERS] < 0) {
            h->parents[CGROUP_CONTROLLERS] = cgroup_open_group(AT_FDCWD, m.mnt_dir, false);
            (void)snprintf(h->unified_options, sizeof(h->unified_options), "%s", m.mnt_opts);
        }
        if (strcmp(m.mnt_type, "cgroup") != 0)
            continue;
        for (int c = 0; c < CGROUP_CONTROLLERS; c++)
            if (h->parents[c] < 0 && has_word(m.mnt_opts, cgroup_names[c], ","))
                h->parents[c] = cgroup_open_group(AT_FDCWD, m.mnt_dir, false);
    }
    (void)endmntent(f);
    return 0;
}

void cgroup_hand_down(const struct cgroup_host *h, int dirfd, char sign)
{
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%c%s", sign, cgroup_names[c]);
        /* -EBUSY: whoever was in the group a moment ago is not quite gone yet. */
        for (int i = 0; h->in_v2[c] && i < BUSY_TRIES; i++) {
            if (fd_write_file_at(dirfd, "cgroup.subtree_control", text) != -EBUSY)
                break;
            (void)poll(NULL, 0, 1);
        }
    }
}

int cgroup_host_open(const char *name, struct cgroup_host **ret_host, struct err *err)
{
    _cleanup_(cgroup_host_freep) struct cgroup_host *h = calloc(1, sizeof(*h));
    if (!h)
        return err_set(err, ENOMEM, "cannot allocate the cgroup host");
    h->unified = -1;
    for (int c = 0; c <= CGROUP_CONTROLLERS; c++)
        h->parents[c] = -1;
    for (int c = 0; c < CGROUP_CONTROLLERS; c++)
        h->v1[c] = -1;
    if (snprintf(h->name, sizeof(h->name), "%s", name) >= (int)sizeof(h->name) || strchr(name, '/'))
        return err_set(err, EINVAL, "'%s' cannot name a control group", name);

    int r = find_mounts(h, err);
    if (r < 0)
        return r;

    int unified = h->parents[CGROUP_CONTROLLERS];
    if (unified >= 0) {
        h->ns_bounds = has_word(h->unified_options, "nsdelegate", ",");
        char list[CGROUP_STAT_SIZE];
        if (fd_read_file_at(unified, "cgroup.controllers", list, sizeof(list)) < 0)
            list[0] = '\0';
        for (int c = 0; c < CGROUP_CONTROLLERS; c++)
            h->in_v2[c] = has_word(list, cgroup_names[c], " \n");
        cgroup_hand_down(h, unified, '+');
        h->unified = cgroup_open_group(unified, name, true);
        if (h->unified < 0)
            return err_set(err, -h->unified, "cannot make control group '%s'", name);
        cgroup_hand_down(h, h->unified, '+');
    }
    for (int c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (h->in_v2[c] || h->parents[c] < 0)
            continue;
        h->v1[c] = cgroup_open_group(h->parents[c], name, true);
        if (h->v1[c] < 0)
            return err_set(err, -h->v1[c], "cannot make %s group '%s'", cgroup_names[c], name);
    }
    *ret_host = take_ptr(h);
    return 0;
}

static int limit_all(struct cgroup_host *h, enum cgroup_controller c, const char *v2,
                     const char *v1, uint64_t n)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%" PRIu64, n);
    if (h->in_v2[c])
        return fd_write_file_at(h->unified, v2, n ? text : "max");
    return h->v1[c] < 0 ? 0
                        : fd_write_file_at(h->v1[c], v1,
                                           n                    ? text
                                           : c == CGROUP_MEMORY ? "-1"
                                                                : "max");
}

int cgroup_host_limit(struct cgroup_host *h, uint64_t memory_bytes, uint64_t pids, struct err *err)
{
    int r = limit_all(h, CGROUP_MEMORY, "memory.max", "memory.limit_in_bytes", memory_bytes);
    if (r < 0)
        return err_set(err, -r, "cannot limit the memory of all sandboxes to %" PRIu64 " bytes",
                       memory_bytes);
    /* The kernel counts sockets' buffers while any group has such a limit, and patches its own code on every cpu when the
     * first comes or the last goes. With a limit that bounds nothing here, that is not each lone sandbox's to pay. */
    if (h->v1[CGROUP_MEMORY] >= 0)
        (void)fd_write_file_at(h->v1[CGROUP_MEMORY], "memory.kmem.tcp.limit_in_bytes", "-1");
    r = limit_all(h, CGROUP_PIDS, "pids.max", "pids.max", pids);
    return r < 0 ? err_set(err, -r, "cannot limit the processes of all sandboxes to %" PRIu64, pids)
                 : 0;
}

static uint64_t read_number(int dirfd, const char *file)
{
    char text[32];
    return fd_read_file_at(dirfd, file, text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

void cgroup_host_memory(struct cgroup_host *h, uint64_t *ret_bytes, uint64_t *ret_limit)
{
    bool v2 = h->in_v2[CGROUP_MEMORY];
    int dir = v2 ? h->unified : h->v1[CGROUP_MEMORY];
    *ret_bytes = dir < 0 ? 0 : read_number(dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    uint64_t limit = dir < 0 ? 0 : read_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    *ret_limit = limit < NO_LIMIT_V1 ? limit : 0; /* v2 says "max", which reads as 0 */
}

void cgroup_host_free(struct cgroup_host *h)
{
    if (!h)
        return;
    cgroup_host_free(h->former);
    fd_close_all(h->v1, CGROUP_CONTROLLERS);
    fd_close_all(h->parents, CGROUP_CONTROLLERS + 1);
    fd_close_all(&h->unified, 1);
    free(h);
}

/* ---- former roots ---- */

const char *cgroup_host_name(const struct cgroup_host *h)
{
    return h->name;
}

int cgroup_host_add_former(struct cgroup_host *h, const char *name, struct err *err)
{
    for (const struct cgroup_host *f = h; f; f = f->former)
        if (strcmp(f->name, name) == 0)
            return 0;
    struct cgroup_host *f = NULL;
    int r = cgroup_host_open(name, &f, err);
    if (r < 0)
        return r;
    f->former = h->former;
    h->former = f;
    return 0;
}

struct cgroup_host *cgroup_host_next(const struct cgroup_host *h)
{
    return h->former;
}

static bool holds(const struct cgroup_host *h, const char *id)
{
    for (int c = 0; c <= CGROUP_CONTROLLERS; c++) {
        int root = c == CGROUP_CONTROLLERS ? h->unified : h->v1[c];
        if (root >= 0 && faccessat(root, id, F_OK, 0) == 0)
            return true;
    }
    return false;
}

struct cgroup_host *cgroup_home(struct cgroup_host *h, const char *id)
{
    for (struct cgroup_host *f = h->former; f; f = f->former)
        if (holds(f, id))
            return f;
    return h;
}

int cgroup_root_of(pid_t pid, const char *id, char ret_name[CGROUP_NAME_SIZE])
{
    char path[32], text[CGROUP_STAT_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) < 0)
        return -ENOENT;
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        const char *name = line + 4;
        size_t n = strcspn(name, "/\n"), id_len = strlen(id);
        if (n == 0 || n >= CGROUP_NAME_SIZE || name[n] != '/' ||
            strncmp(name + n + 1, id, id_len) != 0 || name[n + 1 + id_len] != '/')
            return -ENOENT;
        memcpy(ret_name, name, n);
        ret_name[n] = '\0';
        return 0;
    }
    return -ENOENT;
}

static int remove_root(const struct cgroup_host *h)
{
    int r = 0;
    for (int c = 0; c <= CGROUP_CONTROLLERS; c++)
        if (h->parents[c] >= 0 && unlinkat(h->parents[c], h->name, AT_REMOVEDIR) < 0 &&
            errno != ENOENT)
            r = -errno;
    return r;
}

void cgroup_drop_root(struct cgroup_host *h)
{
    (void)remove_root(h);
}

int cgroup_host_remove(struct cgroup_host *h)
{
    int r = 0;
    for (; h; h = h->former) {
        int one = remove_root(h);
        r = one < 0 ? one : r;
    }
    return r;
}

bool cgroup_host_has(const struct cgroup_host *h, enum cgroup_controller c)
{
    return h->in_v2[c] || h->v1[c] >= 0;
}

bool cgroup_host_is_v2(const struct cgroup_host *h, enum cgroup_controller c)
{
    return h->in_v2[c];
}

bool cgroup_host_has_unified(const struct cgroup_host *h)
{
    return h->unified >= 0;
}

int cgroup_host_group(const struct cgroup_host *h)
{
    return h->unified;
}
