#include "confine/unnamed.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define NUMBERS_MAX 4096 /* well above any table: from there on nothing has a name */

struct gap {
    uint32_t first, last;
};

static bool has_name(int nr)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
    bool named = name != NULL;
    free(name);
    return named;
}

/* Returns how many there are. The last one is open: every number from its first on. */
static size_t find_gaps(struct gap gaps[UNNAMED_GAPS_MAX])
{
    size_t n = 0;
    bool inside = false;
    for (int nr = 0; nr < NUMBERS_MAX; nr++) {
        bool named = has_name(nr);
        if (!named && !inside &&
            n == UNNAMED_GAPS_MAX - 1) /* the rest stays with the library: EPERM */
            n--;
        if (!named && !inside)
            gaps[n++] = (struct gap){ (uint32_t)nr, 0 };
        if (named && inside)
            gaps[n - 1].last = (uint32_t)nr - 1;
        inside = !named;
    }
    if (inside)
        gaps[n - 1].last = UINT32_MAX;
    return n;
}

size_t unnamed_rules(struct sock_filter out[UNNAMED_MAX])
{
    struct gap gaps[UNNAMED_GAPS_MAX];
    size_t ngaps = find_gaps(gaps), n = 0, total = 3 + 2 * ngaps + 2;
    out[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    out[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 0,
                                          (uint8_t)(total - n - 1));
    n++;
    out[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ngaps; i++) { /* below: past this gap; within: to the ENOSYS */
        out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, gaps[i].first, 0, 1);
        out[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, gaps[i].last, 0,
                                              (uint8_t)(total - n - 2));
        n++;
    }
    out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0);
    out[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
                                            SECCOMP_RET_ERRNO | (ENOSYS & SECCOMP_RET_DATA));
    return n;
}
