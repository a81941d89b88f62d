/* birth - what a sandbox is, as files in /run/e2b: for programs that look there.
 *
 * Sent behind its first command, and nobody waits for them: making a sandbox and starting a command
 * in it cost what they did without. Which sandboxes have theirs is remembered in a table of fixed
 * size; to write them once more does no harm. */
#pragma once
#include "core/file.h"

/* The writing of them, to be freed when the command's stream is; NULL: they are there. */
struct file_call *birth_files(struct core *core, const struct sandbox *s);
