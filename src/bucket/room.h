/* room - where s3fs runs: a root of its own with the system's programs, read-only, and nothing else.
 *
 * It has a user of its own without rights, no network but its loopback, no processes to see, bounded memory and
 * temporary space, and a key file that exists nowhere else. s3fs mounts by way of `fusermount`: what has that
 * name here is this program, which hands it the device that the keeper made (hand_over). */
#pragma once
#include <sys/types.h>

#include "base/err.h"
#include "wire/bucket.h"

#define ROOM_FUSE_FD 3   /* the device, in s3fs and what it starts */
#define ROOM_PARENT_FD 4 /* a pidfd of the relay, until s3fs runs */
#define ROOM_SPOOL_FD 5  /* BUCKET_SPOOL_FD, likewise */

/* In the child that becomes s3fs, as root and single-threaded: never returns on success. `uid` is whom
 * it runs as; `files_uid` whom its files belong to. */
int room_run(const struct bucket_config *c, uid_t uid, uid_t files_uid, struct err *err);
/* For both halves: no rights, none to be had, and few system calls. */
int room_drop(uid_t uid, struct err *err);
/* As `fusermount`: give ROOM_FUSE_FD to whoever asks. The exit code. */
int room_hand_over(void);
