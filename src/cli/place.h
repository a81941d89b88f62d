/* place - a file here, or one in a sandbox: "FILE" or "SANDBOX:PATH".
 *
 * As scp and docker have it: what has a colon before its first slash is in a sandbox; "./a:b" is a
 * file here. "-" is standard input or output. Pure, but for the memory of the parts. */
#pragma once
#include <stdbool.h>

struct place {
    char *sandbox; /* NULL: here */
    char *path;
};
void place_parse(const char *text, struct place *ret_place);
void place_done(struct place *p);
bool place_is_stdio(const struct place *p);
/* The last part of a path, without slashes behind it; "" of the root. The caller frees. */
char *place_name(const char *path);
/* "dir" and "name" joined by one slash. The caller frees. */
char *place_join(const char *dir, const char *name);

/* The API's path for a file operation; the caller frees. `sub` is "" or "stat", "list" ... */
char *files_path(const char *sandbox, const char *sub, const char *path, const char *user);
