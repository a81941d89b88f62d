/* The machine: its disk and memory, what sandboxes take of them, and this process. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "core/disk.h"
#include "core/host.h"
#include "core/core.h"
#include "front/http/metrics_private.h"

#define GAUGE "gauge"
#define MEMINFO_MAX 8192
#define US 1000000

static int put_disk(const struct disk_reading *d, struct buf *out)
{
    static const char *const labels[DISK_AREAS] = { "area=\"pool\"", "area=\"metadata\"",
                                                    "area=\"data\"" };
    struct metric rows[4 * DISK_AREAS];
    size_t n = 0;
    for (int i = 0; i < DISK_AREAS; i++)
        rows[n++] = (struct metric){
            "warren_disk_size_bytes", GAUGE,
            "Size of the pool that holds sandboxes and images, of what its metadata may take, and "
            "of the data directory's filesystem.",
            labels[i], d->areas[i].size
        };
    for (int i = 0; i < DISK_AREAS; i++)
        rows[n++] = (struct metric){ "warren_disk_free_bytes", GAUGE, "Room that is left there.",
                                     labels[i], d->areas[i].free };
    for (int i = 0; i < DISK_AREAS; i++)
        rows[n++] =
            (struct metric){ "warren_disk_reserve_bytes", GAUGE,
                             "Room that is kept for sandboxes that run: nothing new is made in it.",
                             labels[i], d->areas[i].reserve };
    for (int i = 0; i < DISK_AREAS; i++)
        rows[n++] = (struct metric){ "warren_disk_level", GAUGE,
                                     "0: there is room; 1: it gets low; 2: nothing new is made.",
                                     labels[i], (uint64_t)d->areas[i].level };
    return metrics_put(out, rows, n);
}

static int put_storage(const struct keeper_room *k, struct buf *out)
{
    const struct metric rows[] = {
        { "warren_storage_allocated_bytes", GAUGE,
          "Pieces of the pool that are given to data and to metadata (all to data in a small one).",
          "kind=\"data\"", k->data_bytes },
        { "warren_storage_allocated_bytes", GAUGE, NULL, "kind=\"metadata\"", k->metadata_bytes },
        { "warren_storage_used_bytes", GAUGE, "What is used of these pieces.", "kind=\"data\"",
          k->data_used_bytes },
        { "warren_storage_used_bytes", GAUGE, NULL, "kind=\"metadata\"", k->metadata_used_bytes },
        { "warren_storage_unallocated_bytes", GAUGE, "Room of the pool that is given to neither.",
          NULL, k->unallocated_bytes },
        { "warren_sandboxes_memory_used_bytes", GAUGE, "Memory that all sandboxes use now.", NULL,
          k->cells_memory_bytes },
        { "warren_sandboxes_memory_limit_bytes", GAUGE,
          "Memory that all sandboxes may use together (--sandbox-memory); 0: no limit.", NULL,
          k->cells_memory_limit_bytes },
    };
    return metrics_put(out, rows, ARRAY_LEN(rows));
}

static int put_promises(const struct core_counts *c, struct buf *out)
{
    const struct metric rows[] = {
        { "warren_sandboxes_memory_promised_bytes", GAUGE,
          "Sum of the memory limits of sandboxes that run.", NULL, c->promised_memory_bytes },
        { "warren_sandboxes_cpus_promised", GAUGE,
          "Sum of the processors that sandboxes which run may use, rounded up.", NULL,
          (c->promised_cpu_millis + 999) / 1000 },
        { "warren_sandboxes_disk_used_bytes", GAUGE,
          "Room that the sandboxes' own files take, as last read.", NULL, c->used_disk_bytes },
        { "warren_sandboxes_disk_promised_bytes", GAUGE, "Sum of the disk limits of all sandboxes.",
          NULL, c->promised_disk_bytes },
        { "warren_images", GAUGE, "Names of images.", NULL, c->images },
        { "warren_volumes", GAUGE, "Volumes.", NULL, c->volumes },
        { "warren_checkpoints", GAUGE, "Checkpoints of sandboxes.", NULL, c->checkpoints },
    };
    return metrics_put(out, rows, ARRAY_LEN(rows));
}

/* Of a text of /proc with a line "Name:   number kB". */
static uint64_t line_bytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) * 1024 : 0;
}

static int put_host(struct core *core, struct buf *out)
{
    char text[MEMINFO_MAX] = "";
    (void)fd_read_file_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text));
    const struct metric rows[] = {
        { "warren_build_info", GAUGE, "The version that runs.", "version=\"" WARREN_VERSION "\"",
          1 },
        { "warren_keeper_up", GAUGE, "Whether the keeper, the privileged half, listens.", NULL,
          host_has_keeper(core) },
        { "warren_host_cpus", GAUGE, "Processors of this machine.", NULL,
          (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) },
        { "warren_host_memory_size_bytes", GAUGE, "Memory of this machine.", NULL,
          line_bytes(text, "MemTotal:") },
        { "warren_host_memory_available_bytes", GAUGE,
          "Memory that programs could still get without swapping.", NULL,
          line_bytes(text, "MemAvailable:") },
    };
    return metrics_put(out, rows, ARRAY_LEN(rows));
}

/* 0: the kernel does not say. */
static uint64_t open_fds(void)
{
    uint64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        (void)closedir(d);
    return n ? n - 1 : 0; /* its own is among them */
}

static uint64_t resident_bytes(void)
{
    char text[128] = "", *after;
    (void)fd_read_file_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text));
    (void)strtoull(text, &after, 10); /* the whole; then what is resident */
    return strtoull(after, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int put_process(struct buf *out)
{
    static const char cpu[] = "warren_process_cpu_seconds_total";
    struct rlimit files = { 0 };
    struct rusage use = { 0 };
    (void)getrlimit(RLIMIT_NOFILE, &files);
    (void)getrusage(RUSAGE_SELF, &use);
    const struct metric rows[] = {
        { "warren_process_open_fds", GAUGE, "File descriptors that the daemon has open.", NULL,
          open_fds() },
        { "warren_process_max_fds", GAUGE, "File descriptors that it may have.", NULL,
          files.rlim_cur },
        { "warren_process_resident_memory_bytes", GAUGE, "Memory of the daemon itself.", NULL,
          resident_bytes() },
    };
    int64_t us = (int64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * US + use.ru_utime.tv_usec +
                 use.ru_stime.tv_usec;
    int r = metrics_put(out, rows, ARRAY_LEN(rows));
    if (r >= 0)
        r = metrics_put_head(out, cpu, "counter", "Processor time of the daemon itself.");
    return r < 0 ? r : buf_printf(out, "%s %" PRId64 ".%06" PRId64 "\n", cpu, us / US, us % US);
}

int metrics_put_machine(struct core *core, const struct core_counts *c, struct buf *out)
{
    struct disk_reading d;
    disk_last(core, &d);
    int r = put_disk(&d, out);
    if (r >= 0)
        r = put_storage(&d.room, out);
    if (r >= 0)
        r = put_promises(c, out);
    if (r >= 0)
        r = put_host(core, out);
    return r < 0 ? r : put_process(out);
}
