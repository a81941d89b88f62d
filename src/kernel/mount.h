/* mount - the new mount API, as the few steps we take with it.
 *
 * Everything is a detached mount in a descriptor until it is moved to its place, so nothing half
 * made is ever visible and no path is resolved twice. All returned descriptors are owned. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A private copy of the mount at `path` below dirfd (dirfd itself when path is ""). */
int mount_clone(int dirfd, const char *path, int *ret_fd, struct err *err);
/* Show a detached mount's files with the ids of a user namespace. */
int mount_idmap(int mount_fd, int userns_fd, struct err *err);
int mount_set_flags(int mount_fd, uint64_t attrs, struct err *err); /* MOUNT_ATTR_*, recursive */

struct mount_option {
    const char *key, *value; /* value NULL: a flag */
};
/* A new filesystem of `type`, detached. attrs are MOUNT_ATTR_*. */
int mount_new(const char *type, const struct mount_option *options, size_t n, uint64_t attrs,
              int *ret_fd, struct err *err);

/* An overlay of upper on lower, both detached mounts; upper holds the directories "upper" and
 * "work". `ids` is the host id of root in the user namespace both layers are mapped to: overlayfs
 * keeps its mounter's identity and must be able to write as somebody the layers can name. `hook` is
 * a directory of our own mount namespace where the layers hang for a moment on older kernels, which
 * take attached ones only. */
int mount_overlay(int lower_fd, int upper_fd, const char *hook, uint32_t ids, int *ret_fd,
                  struct err *err);

/* Put a detached mount over what `target_fd` is; or over `path` below dirfd (AT_FDCWD: an absolute
 * path of our own), which must not be reached through a symbolic link. */
int mount_place(int mount_fd, int target_fd, struct err *err);
int mount_place_at(int mount_fd, int dirfd, const char *path, struct err *err);
/* Put a copy of the mount at `source` over `target`, both paths of our own that nobody else chooses. One call of the
 * old API: for a mount that needs nothing else it costs a third, since no detached tree is made and let go of. */
int mount_bind(const char *source, const char *target, struct err *err);

/* Enter a mount namespace of our own, private, with what is our root now as the root of it. That is
 * more than unshare(2) does where we were started in a chroot: the kernel makes no user namespaces
 * for a process whose root is not its mount namespace's. */
int mount_own_namespace(struct err *err);

/* In a private mount namespace: let go of every mount that neither holds one of the `keep` paths
 * nor is a control group hierarchy. Each cell starts from a copy of what is left. */
void mount_trim(const char *const *keep, size_t n);
