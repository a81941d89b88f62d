/* template_memory - the ready state of a template, kept with its memory, so that creates are copies of it.
 *
 * The state is a checkpoint with memory of a sandbox that was booted for nobody, with nothing but the template's own: no
 * create's environment, token or binding is in it. Its row names the template's version in the place of a sandbox, and
 * as its comment the kernel, CRIU and warren-init that it was written with. It belongs to the template's owner, counts for that
 * team's disk, and is in no list. When one is made and which creates are copies is for shelf.c to say. Calls block for as
 * long as the keeper takes. */
#pragma once
#include "core/private.h"

#define MEMORY_HOST_SIZE 512

/* Whose it would be: the kernel, CRIU and warren-init here. -EOPNOTSUPP, memory_unsupported: nobody here. */
int template_memory_host(struct core *core, char ret_host[MEMORY_HOST_SIZE], struct err *err);
/* The one of that version, on that tree, that this host can read; others of the version are removed. False: none. */
bool template_memory_find(struct core *core, const char *version, const char *tree,
                          const char *host, char ret_point[ID_SIZE]);
/* Puts s, a cell of no sandbox that is booted and has that spec, down, which ends it. -EBUSY, cannot_dump;
 * -EDQUOT, quota_exceeded. */
int template_memory_keep(struct core *core, const char *version, const struct sandbox *s,
                         const char *tree, const char *host, char ret_point[ID_SIZE],
                         struct err *err);
/* A running cell of the id and the limits of s, which has its files and processes. */
int template_memory_copy(struct core *core, const struct sandbox *s, const char *tree,
                         const char *point, struct err *err);
void template_memory_forget(struct core *core, const char *point); /* now or later */
/* At start, with the templates loaded: those of templates that are gone. */
void template_memory_sweep(struct core *core);
