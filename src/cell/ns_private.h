/* ns_private - what the two halves of the ns cell share: the host's part and the child's. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "cell/ns.h"
#include "kernel/seccomp.h"

struct sock_fprog;

#define NS_MASKS_MAX 64
#define NS_PATH_SIZE 96
#define NS_OWN_SYS "own-sys" /* of the shared directory: where a cell's child hangs its /sys */

enum ns_mask_kind {
    NS_HIDE_DIR,  /* an empty directory over it */
    NS_HIDE_FILE, /* an empty file over it */
    NS_SHOW,      /* its stand-in over it (ns_show.h) */
    NS_READONLY,  /* itself, read-only */
};

struct ns_mask {
    enum ns_mask_kind kind;
    const char *path;        /* below the shared directory: "proc/kcore" */
    char over[NS_PATH_SIZE]; /* of the shared directory: what lies over it; or "" */
};

/* The keeper's three words to the child, some with descriptors. With the last come those that `has` says, in this order:
 * the OOM counter, the v1 groups that commands join, those that pid 1 does. */
#define NS_WORD_MAPPED 'm' /* your ids are mapped */
#define NS_WORD_ROOT 'r'   /* here is your root */
#define NS_WORD_GROUPS 'g' /* here are your groups: join them and run */

#define NS_LATE_PROCS 1 /* the v1 groups of the workload, behind its count of OOM kills */
#define NS_LATE_INIT (NS_LATE_PROCS + CGROUP_CONTROLLERS) /* from here on: pid 1's own */
#define NS_LATE_MAX (NS_LATE_INIT + CGROUP_CONTROLLERS)

struct ns_word {
    char word;
    bool has[NS_LATE_MAX];
};

struct ns_host {
    int init_fd; /* sealed; not readable by anyone, so no process of it can be traced */
    int boots;   /* the directory of boot ids (ns_boot.h) */
    uint64_t init_id;
    struct sock_fprog *filter;
    struct seccomp_cookie cookie;
    struct ns_mask masks[NS_MASKS_MAX]; /* those that exist on this host */
    size_t nmasks;
};

/* The child: waits for the word, builds the inside, becomes warren-init. */
_Noreturn void ns_child(const struct ns_host *host, const struct ns_spec *spec, int go_fd,
                        int status_fd);
