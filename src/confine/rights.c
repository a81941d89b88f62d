#include "confine/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGHEST 63 /* the sets have as many bits */

static uint64_t set_of(const int *capabilities, size_t n)
{
    uint64_t set = 0;
    for (size_t i = 0; i < n; i++)
        set |= 1ull << capabilities[i];
    return set;
}

int rights_bound(const int *capabilities, size_t n, struct err *err)
{
    uint64_t kept = set_of(capabilities, n);
    for (int cap = 0; cap <= HIGHEST; cap++) {
        int has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        if (has < 0)
            break; /* the kernel has no more */
        if (has && !(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return err_set(err, errno, "cannot drop capability %d from the bounding set", cap);
    }
    return 0;
}

int rights_hold(const int *capabilities, size_t n, struct err *err)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct now[2], then[2];
    uint64_t kept = set_of(capabilities, n);
    if (syscall(SYS_capget, &head, now) < 0)
        return err_set(err, errno, "cannot read the capabilities");
    for (int i = 0; i < 2; i++) {
        uint32_t part = (uint32_t)(kept >> (32 * i));
        then[i] = (struct __user_cap_data_struct){ .effective = now[i].effective & part,
                                                   .permitted = now[i].permitted & part };
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, then) < 0)
        return err_set(err, errno, "cannot drop capabilities");
    return 0;
}

int rights_become(uid_t uid, gid_t gid, struct err *err)
{
    uid_t ru, eu, su;
    gid_t rg, eg, sg;
    if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return err_set(err, errno, "cannot become user %u of group %u", (unsigned)uid,
                       (unsigned)gid);
    int r = rights_hold(NULL, 0, err); /* the securebits of the keeper's children keep them */
    if (r < 0)
        return r;
    if (getresuid(&ru, &eu, &su) < 0 || getresgid(&rg, &eg, &sg) < 0 || ru != uid || eu != uid ||
        su != uid || rg != gid || eg != gid || sg != gid || getgroups(0, NULL) != 0 ||
        setresuid(0, 0, 0) == 0)
        return err_set(err, EPERM, "root was not given up");
    return 0;
}
