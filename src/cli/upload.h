/* upload - a file, or standard input, as the body of a request, with a bar on a terminal. */
#pragma once
#include <jansson.h>

#include "base/err.h"

struct cli;

/* file "-": standard input. The caller decrefs *ret_json. -EISDIR for a directory. */
int upload_file(struct cli *cli, const char *method, const char *path, const char *file,
                json_t **ret_json, struct err *err);
