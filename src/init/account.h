/* account - who a command runs as: ids, groups, home and shell, from /etc/passwd and /etc/group.
 *
 * Reads the two files itself: a static program has no name service, and the files belong to the
 * sandbox, so they are hostile: bounded, and never waited for. The last answer is kept for as
 * long as both files stay as they were. account_resolve is pure. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define ACCOUNT_SPEC_MAX 256   /* "user:group", each at most a long login name */
#define ACCOUNT_GROUPS_MAX 256 /* more supplementary groups than anyone is in */

struct account {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* supplementary, without gid itself */
    size_t ngroups;
    char *name; /* what USER and LOGNAME say: the login name, or the number if it has none */
    char *home;
    char *shell;
};

struct account_text {
    const char *p;
    size_t n;
};

/* spec is a name, "uid", "uid:gid" or "name:group"; empty is root. -ENOENT: no such user, -ESRCH:
 * no such group. A number need not be listed, and an explicit group is the only one. */
int account_resolve(const char *spec, struct account_text passwd, struct account_text group,
                    struct account *ret_a);
void account_done(struct account *a);

/* The same from the files. *ret_a is borrowed until the next call. */
int account_lookup(const char *spec, const struct account **ret_a);
