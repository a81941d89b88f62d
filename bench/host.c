#include "host.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "base/id.h"

#define LINE_SIZE 4096
#define PATH_SIZE 512
#define IDS_FIRST_CAP 1024

static void cleanup_closedir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* ---- processes ---- */

struct proc {
    pid_t pid, parent;
    bool in_tree;
};

static pid_t parent_of(pid_t pid)
{
    char path[PATH_SIZE], line[LINE_SIZE];
    _cleanup_file_ FILE *f = NULL;
    const char *p;
    int parent;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    f = fopen(path, "re");
    if (!f || !fgets(line, sizeof(line), f))
        return 0;
    p = strrchr(line, ')'); /* the name before it may hold anything */
    return p && sscanf(p + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static size_t list_tree(pid_t daemon, struct proc **ret)
{
    _cleanup_(cleanup_closedir) DIR *d = opendir("/proc");
    struct proc *all = NULL;
    size_t n = 0, cap = 0, out = 0;
    bool grew = true;

    for (struct dirent *e; d && (e = readdir(d));) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

        if (pid <= 0)
            continue;
        if (n == cap) {
            cap = cap ? cap * 2 : IDS_FIRST_CAP;
            all = realloc(all, cap * sizeof(*all));
            if (!all)
                abort();
        }
        all[n++] = (struct proc){ pid, parent_of(pid), pid == daemon };
    }
    while (grew) { /* a child may be listed before its parent once numbers have wrapped */
        grew = false;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n && !all[i].in_tree; j++)
                if (all[j].in_tree && all[j].pid == all[i].parent)
                    grew = all[i].in_tree = true;
    }
    for (size_t i = 0; i < n; i++)
        if (all[i].in_tree)
            all[out++] = all[i];
    *ret = all;
    return out;
}

unsigned host_tree_size(pid_t daemon)
{
    _cleanup_free_ struct proc *tree = NULL;

    return (unsigned)list_tree(daemon, &tree);
}

pid_t host_child(pid_t daemon, const char *comm)
{
    _cleanup_free_ struct proc *tree = NULL;
    size_t n = list_tree(daemon, &tree);

    for (size_t i = 0; i < n; i++) {
        char path[PATH_SIZE], name[LINE_SIZE] = "";
        _cleanup_file_ FILE *f = NULL;

        (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)tree[i].pid);
        f = fopen(path, "re");
        if (f && fgets(name, sizeof(name), f) && strncmp(name, comm, strlen(comm)) == 0)
            return tree[i].pid;
    }
    return 0;
}

/* ---- memory ---- */

static int64_t field_kb(const char *path, const char *name)
{
    _cleanup_file_ FILE *f = fopen(path, "re");
    char line[LINE_SIZE];
    size_t n = strlen(name);

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return strtoll(line + n + 1, NULL, 10);
    return 0;
}

void host_memory(pid_t daemon, struct host_memory *ret_memory)
{
    _cleanup_free_ struct proc *tree = NULL;
    size_t n = list_tree(daemon, &tree);
    int64_t stacks = field_kb("/proc/meminfo", "KernelStack");
    int64_t vmalloc = field_kb("/proc/meminfo", "VmallocUsed");
    struct host_memory m = { .processes = (unsigned)n };

    for (size_t i = 0; i < n; i++) {
        char path[PATH_SIZE];

        (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)tree[i].pid);
        m.tree_pss_kb += field_kb(path, "Pss");
    }
    /* Kernel stacks live in vmalloc space and are part of both figures: count them once. */
    m.kernel_kb = field_kb("/proc/meminfo", "Slab") + field_kb("/proc/meminfo", "PageTables") +
                  field_kb("/proc/meminfo", "Percpu") + field_kb("/proc/meminfo", "Shmem") +
                  (vmalloc > stacks ? vmalloc : stacks);
    m.available_kb = field_kb("/proc/meminfo", "MemAvailable");
    *ret_memory = m;
}

void host_line(char *out, size_t size)
{
    struct utsname u;
    struct sysinfo s;

    (void)uname(&u);
    (void)sysinfo(&s);
    (void)snprintf(out, size, "Linux %s %s, %d cores, %.0f GiB", u.release, u.machine, get_nprocs(),
                   (double)s.totalram * s.mem_unit / (1 << 30));
}

double host_load(void)
{
    double load = 0;

    (void)getloadavg(&load, 1);
    return load;
}

double host_busy_ms(void)
{
    _cleanup_file_ FILE *f = fopen("/proc/stat", "re");
    unsigned long long user = 0, nice = 0, system = 0, idle, wait, irq = 0, soft = 0;

    if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                     &wait, &irq, &soft) != 7)
        return 0;
    return (double)(user + nice + system + irq + soft) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

/* ---- what was left behind ---- */

void host_ids_add(struct host_ids *ids, const char *id)
{
    if (ids->n == ids->cap) {
        ids->cap = ids->cap ? ids->cap * 2 : IDS_FIRST_CAP;
        ids->id = realloc(ids->id, ids->cap * sizeof(*ids->id));
        if (!ids->id)
            abort();
    }
    (void)snprintf(ids->id[ids->n++], sizeof(*ids->id), "%s", id);
}

static int compare(const void *a, const void *b)
{
    return memcmp(a, b, ID_LEN);
}

void host_ids_sort(struct host_ids *ids)
{
    if (ids->n)
        qsort(ids->id, ids->n, sizeof(*ids->id), compare);
}

void host_ids_done(struct host_ids *ids)
{
    free(ids->id);
    *ids = (struct host_ids){ 0 };
}

/* Whether a run of exactly ID_LEN letters and digits in `text` is one of the ids. */
static bool holds_id(const char *text, const struct host_ids *ids)
{
    for (const char *p = text; *p;) {
        size_t n = 0;

        while (isalnum((unsigned char)p[n]))
            n++;
        if (n == ID_LEN && ids->n && bsearch(p, ids->id, ids->n, sizeof(*ids->id), compare))
            return true;
        p += n ? n : 1;
    }
    return false;
}

unsigned host_find_ids(const char *path, unsigned depth, const struct host_ids *ids, char *example,
                       size_t size)
{
    _cleanup_(cleanup_closedir) DIR *d = opendir(path);
    unsigned found = 0;

    for (struct dirent *e; d && (e = readdir(d));) {
        char below[PATH_SIZE];

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= (int)sizeof(below))
            continue;
        if (holds_id(e->d_name, ids)) {
            if (!found++)
                (void)snprintf(example, size, "%s", below);
        } else if (e->d_type == DT_DIR && depth > 1) {
            found += host_find_ids(below, depth - 1, ids, example, size);
        }
    }
    return found;
}

unsigned host_find_mounts(pid_t pid, const struct host_ids *ids, char *example, size_t size)
{
    char path[PATH_SIZE], line[LINE_SIZE];
    _cleanup_file_ FILE *f = NULL;
    unsigned found = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (holds_id(line, ids) && !found++)
            (void)snprintf(example, size, "%s", line);
    return found;
}
