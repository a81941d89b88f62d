/* host - what the machine says about itself: memory, a daemon's processes, what was left behind.
 *
 * A daemon is known by its pid; "its tree" is that process and all its descendants, so one sum
 * covers warrend, its keeper and everything inside its sandboxes. Plain reads of /proc and of
 * directories; nothing is changed. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct host_memory {
    int64_t tree_pss_kb; /* processes' proportional share, summed */
    int64_t kernel_kb;   /* slab, stacks, page tables, per-cpu, vmalloc, tmpfs pages */
    int64_t available_kb;
    unsigned processes; /* in the tree */
};

void host_memory(pid_t daemon, struct host_memory *ret_memory);
unsigned host_tree_size(pid_t daemon);
void host_line(char *out, size_t size); /* kernel, cores, memory: for the report's head */
double host_load(void);                 /* the last minute's */
double host_busy_ms(void); /* of all processors since the machine began, the kernel's work too */

/* Names under `path` (down to `depth` directories) that contain one of the sorted ids; the first
 * one found is copied to `example`. A path that cannot be read counts nothing. */
struct host_ids {
    char (*id)[21];
    size_t n, cap;
};
void host_ids_add(struct host_ids *ids, const char *id);
void host_ids_sort(struct host_ids *ids);
void host_ids_done(struct host_ids *ids);
unsigned host_find_ids(const char *path, unsigned depth, const struct host_ids *ids, char *example,
                       size_t size);
/* The same among the mounts that process `pid` sees. */
unsigned host_find_mounts(pid_t pid, const struct host_ids *ids, char *example, size_t size);
/* A child of `daemon` whose program's name is `comm`; 0 if there is none. */
pid_t host_child(pid_t daemon, const char *comm);
