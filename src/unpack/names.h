/* names - what is in a directory, sorted. */
#pragma once
#include <stddef.h>

struct names {
    char **items;
    size_t n;
};
#define NAMES_INIT \
    {              \
        NULL, 0    \
    }

/* Adds those of the directory, whose own place in it is left alone; names that are there already
 * stay single. -errno. */
int names_add(struct names *names, int dir_fd);
void names_done(struct names *names);
