/* What the daemon found on its machine: its own word, over a URL too, for the disk that it writes to
 * and the CRIU that its keeper runs are not always those that this command would find. */
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#include "base/criu.h"
#include "cli/doctor_private.h"
#include "cli/object.h"
#include "cli/units.h"

#define DISK_LOW (1LL << 30) /* less than an image and its sandboxes need */
#define DISK_TIGHT (5LL << 30)
#define DEFAULT_DATA "/var/lib/warren"
#define MAKE_ROOM                                                                             \
    "delete sandboxes, checkpoints and volumes; `warren image prune`; or a larger disk (see " \
    "docs/operating.md)"

static void add_area(struct finding *f, const json_t *disk, const char *name, const char *shown)
{
    char left[UNIT_TEXT_MAX], size[UNIT_TEXT_MAX];
    const json_t *area = json_object_get(disk, name);
    size_t n = strlen(f->detail);
    if (!area)
        return;
    const char *level = member_text(area, "level");
    enum finding_mark mark = strcmp(level, "full") == 0  ? FINDING_FAIL
                             : strcmp(level, "low") == 0 ? FINDING_WARN
                                                         : FINDING_OK;
    f->mark = mark > f->mark ? mark : f->mark;
    (void)snprintf(f->detail + n, sizeof(f->detail) - n, "%s%s %s free of %s%s", n ? "; " : "",
                   shown, size_text(member_int(area, "free_bytes"), left),
                   size_text(member_int(area, "size_bytes"), size),
                   mark == FINDING_FAIL   ? ": nothing new is made"
                   : mark == FINDING_WARN ? ": low"
                                          : "");
}

static void look_disk(struct finding *f, const json_t *host)
{
    const json_t *disk = json_object_get(host, "disk");
    add_area(f, disk, "pool", "pool");
    add_area(f, disk, "metadata", "its metadata");
    add_area(f, disk, "data", member_text(host, "data_dir"));
    if (f->mark != FINDING_OK)
        finding_fix(f, MAKE_ROOM);
}

static bool has(const json_t *host, const char *feature)
{
    return json_is_true(json_object_get(json_object_get(host, "features"), feature));
}

static void look_memory(struct finding *f, const json_t *host)
{
    const char *criu = member_text(host, "criu");
    if (has(host, "memory_images")) {
        finding_say(f, FINDING_OK, "%.150s", criu);
        return;
    }
    finding_say(f, FINDING_WARN, "sandboxes cannot be paused with their memory: %.140s", criu);
    finding_fix(f, "sudo warren-criu; in the source tree: sudo ./dev criu");
}

static void look_kernel(struct finding *f, const json_t *host)
{
    finding_say(f, FINDING_OK, "%.60s, %.20s", member_text(host, "kernel"),
                member_text(host, "machine"));
}

static void look_limits(struct finding *f, const json_t *host)
{
    static const char *const needed[] = { "memory_limit", "cpu_limit", "pids_limit", "disk_limit" };
    for (size_t i = 0; i < ARRAY_LEN(needed); i++)
        if (!has(host, needed[i])) {
            finding_say(f, i < 3 ? FINDING_FAIL : FINDING_WARN, "there is no %s", needed[i]);
            finding_fix(f, "run `warren doctor` on that machine: it says how to get it");
            return;
        }
    finding_say(f, FINDING_OK, "memory, cpu, pids, disk");
}

static void look_freezer(struct finding *f, const json_t *host)
{
    if (has(host, "freezer")) {
        finding_say(f, FINDING_OK, "there");
        return;
    }
    finding_say(f, FINDING_WARN, "no freezer: sandboxes cannot be paused");
    finding_fix(f, "mount the cgroup2 filesystem there, as systemd does");
}

const struct daemon_check doctor_daemon_checks[] = {
    { "kernel", look_kernel, true },   { "limits", look_limits, true },
    { "freezer", look_freezer, true }, { "disk", look_disk, false },
    { "memory", look_memory, false },
};
const size_t doctor_daemon_checks_n = ARRAY_LEN(doctor_daemon_checks);

/* ---- where no daemon answers: as far as this machine shows ---- */

/* The filesystem that will hold a directory that may not be there yet. */
static bool filesystem_of(char *path, struct statfs *fs)
{
    while (statfs(path, fs) < 0) {
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        slash[slash == path] = '\0';
        if (slash == path)
            return statfs(path, fs) == 0;
    }
    return true;
}

static void look_future_disk(struct finding *f)
{
    char path[512], left_text[UNIT_TEXT_MAX];
    const char *data = getenv("WARREN_DATA");
    struct statfs fs = { 0 };
    (void)snprintf(path, sizeof(path), "%s", data && *data ? data : DEFAULT_DATA);
    (void)filesystem_of(path, &fs);
    int64_t left = (int64_t)fs.f_bavail * (int64_t)fs.f_bsize;
    finding_say(f,
                left < DISK_LOW     ? FINDING_FAIL
                : left < DISK_TIGHT ? FINDING_WARN
                                    : FINDING_OK,
                "%s free at %.100s, where data lies by default", size_text(left, left_text), path);
    if (left < DISK_TIGHT)
        finding_fix(f, "make room, or put the data elsewhere with warrend --data DIR");
}

static void look_future_memory(struct finding *f)
{
    struct criu c;
    struct err err = ERR_INIT;
    if (criu_find(&c, &err) >= 0) {
        finding_say(f, FINDING_OK, "CRIU %.20s from %.80s", c.version, c.from);
        return;
    }
    finding_say(f, FINDING_WARN, "sandboxes cannot be paused with their memory: %.140s", err.msg);
    finding_fix(f, "sudo warren-criu; in the source tree: sudo ./dev criu");
}

const struct check doctor_future_checks[] = {
    { "disk", look_future_disk },
    { "memory", look_future_memory },
};
const size_t doctor_future_checks_n = ARRAY_LEN(doctor_future_checks);
