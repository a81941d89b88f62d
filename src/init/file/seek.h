/* seek - every text file that SEARCH and REPLACE were asked to look at, one after the other. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "init/file/globs.h"
#include "init/file/job.h"
#include "init/file/needle.h"

struct seek_file {
    int fd; /* regular, open for reading */
    int dir;
    const char *name, *path;
    struct stat st;
};

struct seek {
    struct job *j;
    struct needle needle;
    struct globs globs;
    int (*fn)(struct seek *k, const struct seek_file *f);
    void *arg;
    bool stop; /* set by fn: enough */
    uint64_t files;
};

int seek_run(struct seek *k);
bool seek_is_binary(const char *p, size_t n); /* a NUL byte early on */
