/* rights - the user that a process of ours becomes, and the capabilities that it keeps: in its
 * bounding set, and in hand. */
#pragma once
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Bound this process and all that it starts to these capabilities, for good. Needs CAP_SETPCAP. */
int rights_bound(const int *capabilities, size_t n, struct err *err);
/* Keep these of the capabilities that the process has now. A program that root runs regains
 * those in the bounding set, unless no_new_privs is set. */
int rights_hold(const int *capabilities, size_t n, struct err *err);
/* Become this user and this group, in no other group, without capabilities and for good: the ids
 * are read back, and root must be out of reach. Call rights_bound before. */
int rights_become(uid_t uid, gid_t gid, struct err *err);
