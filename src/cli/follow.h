/* follow - a request whose answer is a job's events, line by line: progress on the terminal, then the last of them. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "cli/progress.h"

struct cli;

/* Shows an event that tells how far it is; false for one that does not. */
typedef bool (*follow_show_fn)(struct progress *progress, const json_t *event);
/* POST, with body (NULL: an empty object). *ret_last is the event at its end; -EIO with the daemon's words if that is a failure. */
int follow(struct cli *cli, const char *path, const json_t *body, follow_show_fn show,
           json_t **ret_last, struct err *err);
