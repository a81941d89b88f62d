/* paths - the part of the filesystem that a process of ours may still reach (Landlock).
 *
 * Besides what user and mode allow: paths and what lies beneath them, to read (and run) or to write, too.
 * What is open stays open. Kernels before 5.19, and those that were started without it, have no Landlock; then
 * nothing changes, and the caller says so. Sets no_new_privs. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct paths_rule {
    const char *path; /* left out where there is none; links are followed */
    bool write;
};

/* 0: in force; 1: there is no Landlock. alone: it may neither signal nor reach by abstract sockets whoever is
 * not confined with it, where the kernel knows how to refuse that (6.12). */
int paths_confine(const struct paths_rule *rules, size_t n, bool alone, struct err *err);
