/* dockerfile - a recipe of an image, read and checked: stages of steps.
 *
 * The language is docker's, without what only its own builder can do; that is refused by name.
 * Nothing is expanded here: what a variable is worth is known when a step's turn comes (scope.h,
 * resolve.h). The text is outside input: all of it is bounded, and every complaint names a line.
 * Pure: no file is read, nothing blocks. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define DOCKERFILE_MAX (1024 * 1024) /* its text */
#define DOCKERFILE_STEPS_MAX 2000
#define DOCKERFILE_STAGES_MAX 200
#define DOCKERFILE_WORDS_MAX 4096            /* of one step */
#define DOCKERFILE_MEMORY (16 * 1024 * 1024) /* of the parsed form */

enum dockerfile_kind {
    DOCKERFILE_FROM,
    DOCKERFILE_RUN,
    DOCKERFILE_COPY,
    DOCKERFILE_ADD,
    DOCKERFILE_ENV,
    DOCKERFILE_ARG,
    DOCKERFILE_WORKDIR,
    DOCKERFILE_USER,
    DOCKERFILE_EXPOSE,
    DOCKERFILE_CMD,
    DOCKERFILE_ENTRYPOINT,
    DOCKERFILE_LABEL,
    DOCKERFILE_SHELL,
    DOCKERFILE_STOPSIGNAL,
    DOCKERFILE_VOLUME,
    DOCKERFILE_HEALTHCHECK,
    DOCKERFILE_MAINTAINER,
};

struct dockerfile_pair {
    const char *name;
    const char *value; /* NULL: an ARG without a default */
};

struct dockerfile_heredoc {
    const char *name, *text;
    size_t len;
    bool expand; /* its name was not quoted */
};

struct dockerfile_health {
    bool none; /* forget the base image's */
    int64_t interval_ns, timeout_ns, start_period_ns, start_interval_ns;
    int retries;
};

struct dockerfile_step {
    enum dockerfile_kind kind;
    unsigned line;    /* where it begins, from 1 */
    const char *text; /* the instruction as it was written, continued lines joined */
    bool json;        /* the exec form: words are an argv */
    /* RUN, CMD, ENTRYPOINT, HEALTHCHECK: an argv, or one text for the shell; COPY, ADD: sources,
     * the destination last; EXPOSE, VOLUME, SHELL: a list; FROM: the image; USER, WORKDIR,
     * STOPSIGNAL, MAINTAINER: one */
    const char **words;
    size_t n_words;
    struct dockerfile_pair *pairs; /* ENV, LABEL, ARG */
    size_t n_pairs;
    const char *from, *chown, *chmod, *platform; /* flags; NULL: not there */
    struct dockerfile_heredoc *heredocs;
    size_t n_heredocs;
    bool script; /* RUN <<X alone: the heredoc is the script */
    /* What no Dockerfile can say, but a recipe of steps can. */
    const char *user;    /* RUN: as whom; NULL: the stage's */
    const char *workdir; /* RUN: where; NULL: the stage's */
    const char *files;   /* COPY: where in the context its sources are; NULL: at the top */
    bool fresh;          /* neither this step nor a later one comes from the cache */
    const char *task;    /* "run command 'make'", for the sentence on its failure; or NULL */
    struct dockerfile_health health;
};

struct dockerfile_stage {
    const char *name; /* lower case; NULL: it has none */
    struct dockerfile_step *from;
    struct dockerfile_step *steps; /* without the FROM */
    size_t n_steps;
};

struct dockerfile_warning {
    unsigned line;
    const char *text;
};

struct dockerfile {
    struct arena arena;           /* all of it */
    char escape;                  /* a backslash, or what `# escape=` says */
    struct dockerfile_step *args; /* ARG before the first FROM */
    size_t n_args;
    struct dockerfile_stage *stages;
    size_t n_stages;
    struct dockerfile_warning *warnings;
    size_t n_warnings;
};

/* -EINVAL, invalid_dockerfile: *ret_line is then the line that is wrong (0: none in particular)
 * and the message names it too. On failure nothing is left to free. */
int dockerfile_parse(const char *p, size_t n, struct dockerfile *ret_file, unsigned *ret_line,
                     struct err *err);
void dockerfile_done(struct dockerfile *file);
const char *dockerfile_kind_name(enum dockerfile_kind kind); /* "RUN" */
