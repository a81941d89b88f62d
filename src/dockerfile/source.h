/* source - a Dockerfile's text as instructions: directives, comments, continued lines, heredocs.
 *
 * Knows where an instruction begins and ends, and which text belongs to it, not what it means. */
#pragma once
#include "base/buf.h"
#include "dockerfile/dockerfile.h"

struct source {
    const char *p, *end;
    unsigned line; /* of p, from 1 */
    char escape;
    struct arena *arena; /* keeps */
};

/* Reads the directives; `# syntax=` of another frontend than docker's plain one is refused. */
int source_init(struct source *src, const char *p, size_t n, struct arena *arena,
                unsigned *ret_line, struct err *err);

struct source_text {
    const char *text; /* one line, from the first word, spaces trimmed at both ends */
    unsigned line;
    bool empty_line; /* a continued line was followed by an empty one */
};

/* 1 and the next instruction, 0 at the end, below zero a failure. */
int source_next(struct source *src, struct source_text *ret_text, struct err *err);

/* The heredocs that a text announces, whose lines are then taken from the source: `args` is the
 * text behind the instruction's name and flags. */
int source_heredocs(struct source *src, const char *args, unsigned line,
                    struct dockerfile_heredoc **ret_docs, size_t *ret_n, struct err *err);

/* Does the word announce a heredoc? Its quotes are taken off the name. */
struct source_mark {
    const char *name;
    bool tabs; /* <<-: leading tabs go */
    bool expand;
};
int source_mark(struct arena *arena, const char *word, size_t n, char escape,
                struct source_mark *ret_mark); /* 1, 0, -ENOMEM */
