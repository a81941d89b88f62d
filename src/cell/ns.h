/* ns - a cell of Linux namespaces: the wall, and warren-init behind it as pid 1.
 *
 * The keeper makes the namespaces and the root filesystem from outside; the child finishes the
 * inside (proc, sys, dev, masks, loopback), gives up what it no longer needs and becomes
 * warren-init. From then on nothing in there holds a path, a descriptor or a capability of the
 * host's. Knows nothing of who asked, or of how storage is kept. Does not wait: the status
 * descriptor tells how it went. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "kernel/cgroup.h"

struct ns_host; /* what all cells share: init's binary, the filter, /dev and stand-ins */

/* `shared` is a directory of root's; small filesystems are mounted in it in the caller's mount
 * namespace, which must be private. It becomes the working directory, and must stay it: a cell's child
 * starts there and needs no right to walk the way. */
int ns_host_new(const char *init_path, const char *shared, struct ns_host **ret_host,
                struct err *err);
void ns_host_free(struct ns_host *host);
DEFINE_FREEP(struct ns_host *, ns_host_free)

/* A descriptor of warren-init to run, as it is in the file `fd`; owned. The host's own if it is the same. */
int ns_host_program(const struct ns_host *host, int fd, int *ret_fd, struct err *err);

/* Another warren-init has another one. */
uint64_t ns_host_init_id(const struct ns_host *host);

#define NS_SHM_BYTES (64ull * 1024 * 1024) /* what /dev/shm holds without a memory limit */

struct ns_spec {
    const char *id;                     /* also its host name */
    int image_fd;                       /* the image's root, opened in our mount namespace */
    int box_fd;                         /* holds "upper" and "work"; ns_give_root needs it */
    uint32_t uid_base;                  /* host id of root inside */
    const struct cgroup_fds *cgroup;    /* ns_prepare needs the groups, ns_release all of it */
    int listen_fd;                      /* a bound socket, for warren-init */
    uint64_t shm_bytes;                 /* how much /dev/shm holds */
    const struct cgroup_limits *limits; /* shown inside; ns_prepare needs them */
    bool apart;                         /* copies share no extents (kernel/seccomp_reflink.h) */
};

struct ns_cell {
    pid_t pid;
    int pidfd;
    int go_fd;     /* ns_release writes here; closing it instead ends the child */
    int status_fd; /* end of file: warren-init runs; else one struct err */
};
#define NS_CELL_INIT   \
    {                  \
        -1, -1, -1, -1 \
    }
void ns_cell_close(struct ns_cell *cell); /* the descriptors; the process goes on */

/* Three steps. The caller writes the pid down after the first: a keeper killed in the middle leaves a child that sees its
 * end of file and exits. After each step the child works on the inside while the caller makes what the next one needs:
 * ns_give_root its files, ns_release its groups and limits, without which nothing of the user's runs. What the cell shows as its boot id stays until
 * ns_boot_drop (ns_boot.h). All of spec is borrowed. */
int ns_prepare(const struct ns_host *host, const struct ns_spec *spec, struct ns_cell *ret_cell,
               struct err *err);
int ns_give_root(const struct ns_cell *cell, const struct ns_spec *spec, struct err *err);
int ns_release(struct ns_cell *cell, const struct ns_spec *spec, struct err *err);
