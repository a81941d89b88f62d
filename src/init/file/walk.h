/* walk - through everything below a directory, held by descriptors.
 *
 * Never follows a link, so there are no loops and no way out: a directory that is swapped for a
 * link while we walk is not entered. Names come sorted, directories before what is in them and
 * once more after it. Memory and depth are bounded. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "init/file/names.h"

#define WALK_DEPTH_MAX 2048

enum walk_kind {
    WALK_LEAF,  /* anything but a directory */
    WALK_ENTER, /* a directory, before what is in it; walk_skip leaves that out */
    WALK_LEAVE, /* after it; `self` is it */
    WALK_FAIL,  /* `code` says why this one cannot be looked at */
};

struct walk_item {
    enum walk_kind kind;
    int dir;          /* borrowed until the next call, like all the rest */
    const char *name; /* in dir */
    const char *path; /* the top's and what leads here */
    const char *rel;  /* the same without the top's */
    struct stat st;
    size_t depth; /* 1: right in the top */
    int self;     /* LEAVE */
    int code;     /* FAIL: positive errno */
};

struct walk_level {
    int fd;
    struct names names;
    size_t at;
    bool barren; /* made-up files lie in there: nobody wants them */
    size_t path_n;
    struct stat st;
};

struct walk {
    struct walk_level *levels;
    size_t n, cap;
    struct buf path;
    size_t top_n;
    size_t bytes; /* of all names held */
    bool enter, leave;
    struct walk_item item;
};

/* Takes `top`, a directory open for reading, also on failure; `path` is what items begin with. */
int walk_init(struct walk *w, int top, const char *path);
int walk_next(struct walk *w, struct walk_item **ret_item); /* 1, 0 at the end, -errno */
void walk_skip(struct walk *w);
void walk_done(struct walk *w);

int walk_open_dir(int dir, const char *name); /* for reading, not through a link; -errno */
