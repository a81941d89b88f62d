/* stage - a file being made beside the name it will have.
 *
 * It has no name until it is whole (O_TMPFILE), so a worker that is killed leaves nothing behind;
 * where the filesystem cannot do that, a random name with a dot. Taking the place of what is there
 * is one rename: whoever reads sees the old bytes or the new ones. Where the directory takes no new
 * file, or the name is a mount point, the bytes wait elsewhere and are copied into what is there. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

#define STAGE_NAME_MAX 32

struct stage {
    int fd;                    /* to write to; -1 */
    int dir;                   /* borrowed */
    bool spooled;              /* lies elsewhere: only to be copied into what is there */
    char temp[STAGE_NAME_MAX]; /* "": it has no name yet */
};

#define STAGE_INIT        \
    {                     \
        -1, -1, false, "" \
    }

/* `may_spool`: there is a file of that name which the user may write to. */
int stage_open(int dir, bool may_spool, struct stage *ret_stage);
/* Give it the mode and extended attributes of (dir, name), and its owner if that is to stay, as far as
 * the user may. */
int stage_like(const struct stage *s, const char *name, const struct stat *old, bool keep_owner);
/* 1: `name` is new; 0: it took the place of what was there. `exclusive`: -EEXIST then. */
int stage_commit(struct stage *s, const char *name, bool exclusive);
void stage_done(struct stage *s); /* what is not committed is gone */

int stage_write(int fd, const char *p, size_t n); /* all of it, or -errno */
void stage_random_name(char out[STAGE_NAME_MAX]);
