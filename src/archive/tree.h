/* tree - entries and their bytes on the connection to a sandbox's init, as wire has them.
 *
 * One side of TREE_IN and TREE_OUT; blocking, since this program does nothing else. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/wire.h"

#define TREE_INIT_FD 3
#define TREE_REPORT_FD 4

struct tree_entry {
    enum wire_file_type type;
    const char *path, *link; /* link NULL: none */
    bool has_mode, has_size, has_mtime;
    uint64_t mode, uid, gid, size, rdev;
    int64_t mtime_ns;
    const char *owner, *group;
};

/* ---- to init; -EPIPE once it has refused ---- */
int tree_put_entry(const struct tree_entry *e, const struct buf *xattrs /* fields, or NULL */);
int tree_put_data(const void *p, size_t n);
int tree_put_hole(uint64_t n);
int tree_put_end(void);

/* ---- from init ---- */

/* One frame into `payload`, its type in *ret_type. */
int tree_next(struct buf *payload, uint8_t *ret_type);
/* An ENTRY's fields; texts point into *texts, which is the caller's to clear. */
int tree_entry_read(const struct buf *payload, struct buf *texts, struct tree_entry *ret_e);

/* ---- the report: one frame, OK or ERROR ---- */
void tree_report_frame(uint8_t type, const struct buf *payload);
void tree_report_error(const struct err *err);
