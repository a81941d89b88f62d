/* toml - the part of TOML 1.0 that a project file needs, read strictly.
 *
 * Tables of one word, `key = value` with bare or quoted keys, strings on one line, numbers, booleans,
 * and arrays of those, which may go over several lines. What else TOML has (dates, inline tables,
 * dotted keys, arrays of tables, strings of several lines) is refused by its name: a file means
 * what it looks like or is not taken. Becomes a JSON object, a table an object in it. Pure. */
#pragma once
#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* *ret_lines is of the same shape, with the line of each value, and under "" in each table the table's
 * own. Sentences begin with "line N: ". */
int toml_parse(const char *p, size_t n, json_t **ret_root, json_t **ret_lines, struct err *err);
