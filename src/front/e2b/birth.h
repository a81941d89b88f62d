/* birth - what a sandbox is, as files in /run/e2b: for programs that look there.
 *
 * Written when its first command is started and while that starts: init gets the files before the
 * command, and nobody waits for them. Which sandboxes have theirs is remembered in a table of fixed
 * size; to write them once more does no harm. */
#pragma once
#include "core/file.h"

/* The writing of them, to be freed when the command's stream is; NULL: they are there. */
struct file_call *birth_files(struct core *core, const struct sandbox *s);
