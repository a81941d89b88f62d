/* account - who a command runs as: ids, groups, home and shell, from /etc/passwd and /etc/group.
 *
 * Reads the two files itself: a static program has no name service, and the files belong to the
 * sandbox, so they are hostile: bounded, and never waited for. The last answer is kept for as
 * long as both files stay as they were. account_resolve is pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* The name that stands with this number in a passwd or group file; false where there is none or it
 * does not fit. Pure. */
bool account_name_of(struct account_text text, uint32_t id, char *out, size_t size);
/* Who "user", "user:group", "user:" (his login group), ":group" or numbers mean; what is not named is
 * -1. -ENOENT: no such user, -ESRCH: no such group. Pure. */
int account_owner(const char *spec, struct account_text passwd, struct account_text group,
                  uid_t *ret_uid, gid_t *ret_gid);
/* Read /etc/passwd or /etc/group: memory to free, NULL (and an empty text) if there is none. */
char *account_read(const char *path, struct account_text *ret_text);
