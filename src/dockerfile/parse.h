/* parse - one instruction of a Dockerfile: its name, its flags, its shape.
 *
 * The table in parse.c is the language. For the files of this directory only. */
#pragma once
#include "dockerfile/dockerfile.h"
#include "dockerfile/source.h"

struct parse {
    struct dockerfile *file; /* its arena keeps everything */
    struct source src;
    struct err *err;
};

/* Fills *ret_step and, for a FROM, *ret_stage_name (NULL: none). */
int parse_step(struct parse *ps, const struct source_text *text, struct dockerfile_step *ret_step,
               const char **ret_stage_name);
int parse_warn(struct parse *ps, unsigned line, const char *text);
int parse_bad(struct parse *ps, unsigned line, const char *fmt, ...) _printf_(3, 4);
int parse_no_memory(struct parse *ps);

/* shapes.c: what stands behind the name and the flags. */
struct parse_rule {
    enum dockerfile_kind kind;
    const char *name;
    int (*shape)(struct parse *ps, struct dockerfile_step *step, const char *args);
    bool heredocs;
    const char *usage;
};
int shape_command(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_copy(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_run(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_pairs(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_args(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_text(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_list(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_json(struct parse *ps, struct dockerfile_step *step, const char *args);
int shape_health(struct parse *ps, struct dockerfile_step *step, const char *args);
