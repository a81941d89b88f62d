/* attributes - which extended attributes pass from a tree into a tar and back. */
#pragma once
#include <stdbool.h>
#include <string.h>

#define ATTRIBUTE_OPAQUE "trusted.overlay.opaque" /* overlayfs's own mark on a directory */
#define ATTRIBUTE_SOCKET "trusted.warren.socket"  /* a FIFO in the tar, a socket in the tree */

/* The user's own and file capabilities; others are the host's business. With `whole` also access lists, and
 * overlayfs's mark: nobody inside a sandbox can set that one. */
static inline bool attribute_kept(const char *name, bool whole)
{
    return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0 ||
           (whole &&
            (strcmp(name, ATTRIBUTE_OPAQUE) == 0 || strcmp(name, "system.posix_acl_access") == 0 ||
             strcmp(name, "system.posix_acl_default") == 0));
}
