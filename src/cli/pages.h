/* pages - a whole list of the API, however many pages it has. */
#pragma once
#include <jansson.h>

#include "base/err.h"

struct cli;

/* GET path (without limit and cursor) until there is no next page; the caller decrefs the array
 * of all that the pages had under `member`. */
int pages_read(struct cli *cli, const char *path, const char *member, json_t **ret_list,
               struct err *err);
