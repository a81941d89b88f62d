/* needle - what SEARCH and REPLACE look for: plain text, or a regular expression by lines.
 *
 * Pure but for memory. Text may span lines; an expression sees one line at a time, without its
 * newline, and lines longer than NEEDLE_LINE_MAX in pieces. */
#pragma once
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#define NEEDLE_LINE_MAX (64u * 1024)
#define NEEDLE_REGEX_MAX 4096 /* of an expression; its compiled form is some hundred times that */
#define NEEDLE_GROUPS 10      /* \0 to \9 */

struct needle {
    const char *text; /* as asked, folded if case does not matter */
    char *folded;
    size_t n;
    bool regex, icase;
    regex_t re;
    bool compiled;
};

struct needle_hit {
    size_t at, n;
    regmatch_t groups[NEEDLE_GROUPS]; /* of an expression; relative to the line's start `line` */
    size_t line;
};

/* -EINVAL: why is in out. Keeps text. */
int needle_init(struct needle *d, const char *text, bool regex, bool icase, char *why,
                size_t why_size);
void needle_done(struct needle *d);
/* The first hit in p[from..n), which is writable at p[n] and left as it was. 1 or 0. */
int needle_find(const struct needle *d, char *p, size_t from, size_t n, struct needle_hit *ret_hit);
