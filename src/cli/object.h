/* object - members of the API's objects, read without surprises.
 *
 * A member that is missing, null or of another type reads as the value for "not there": a
 * daemon of another version never makes the CLI stumble. Results are borrowed from the object. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

const char *member_text(const json_t *o, const char *name); /* "" */
int64_t member_int(const json_t *o, const char *name);      /* 0 */
double member_real(const json_t *o, const char *name);      /* 0 */
bool member_true(const json_t *o, const char *name);
int64_t member_moment(const json_t *o, const char *name);     /* ms, 0 */
const json_t *member_list(const json_t *o, const char *name); /* an array; NULL */
/* The texts of an array in one, "" for none; the caller owns it. */
char *member_words(const json_t *o, const char *name, const char *between);

/* Set a member from the command line; -EILSEQ and a sentence where it is not UTF-8. */
int object_text(json_t *o, const char *name, const char *value, struct err *err);
int list_text(json_t *list, const char *value, struct err *err);
/* "NAME=value" words into the object's member `name`, which is made if need be. */
int object_pairs(json_t *o, const char *name, const char *const *pairs, size_t n, struct err *err);

/* A path of the API: "/v1" and each segment, percent-encoded. Ends with NULL. */
char *api_path(const char *first, ...) __attribute__((sentinel));
char *api_below(const char *path, const char *segment); /* one more, encoded */
/* Append "?name=value" or "&name=value", encoded. Takes and returns the path. */
char *api_query(char *path, const char *name, const char *value);
