/* paths - the part of the filesystem that a process of ours may still reach (Landlock).
 *
 * Narrows what user and mode allow to a list of paths and what lies beneath them, to read (and
 * run) or also to write. Descriptors that are open stay open. Kernels before 5.19, and those
 * started without it, have no Landlock; then nothing changes, and the caller says so. Sets
 * no_new_privs. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct paths_rule {
    const char *path; /* a path that does not exist is left out; links are followed */
    bool write;
};

/* 0: in force; 1: there is no Landlock. alone: the process may neither signal nor reach by
 * abstract sockets any process outside, where the kernel can refuse that (6.12). */
int paths_confine(const struct paths_rule *rules, size_t n, bool alone, struct err *err);
