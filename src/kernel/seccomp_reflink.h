/* seccomp_reflink - a second filter for a cell that sees several volumes: no copy shares extents.
 *
 * btrfs's simple quotas count an extent for the volume that wrote it, for as long as anybody has it. Shared into another
 * volume it would stay when the first is deleted, and count for nobody. A program that asks for such a copy gets the answer
 * of a filesystem that has none, and copies the bytes. */
#pragma once

/* For the calling thread; needs CAP_SYS_ADMIN in its user namespace. 0 or -errno. */
int seccomp_refuse_reflinks(void);
