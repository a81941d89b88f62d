/* build_private - the inside of a build, for the files build*.c only.
 *
 * build.c: its life and its events; build_run.c: stages and steps; build_step.c: what each
 * instruction does to the configuration; build_exec.c: RUN; build_copy.c and build_source.c: COPY
 * and ADD; build_recipe.c: steps that are no Dockerfile; build_context.c: the files that were sent; build_cache.c: what need not be done again;
 * build_image.c: the image at the end. */
#pragma once
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/ignore.h"
#include "core/archiver.h"
#include "core/build.h"
#include "core/file.h"
#include "core/private.h"
#include "core/process.h"
#include "dockerfile/plan.h"
#include "dockerfile/resolve.h"

#define BUILD_CONTEXT_DIR "/context"       /* in the context's cell */
#define BUILD_OUTSIDE ".warren.dockerfile" /* of a client whose Dockerfile is not in its context */
#define BUILD_MEMORY (2ull * 1024 * 1024 * 1024) /* of a step */
#define BUILD_DISK (10ull * 1024 * 1024 * 1024)  /* of a step, and of the context */
#define BUILD_CPU_MILLIS 2000
#define BUILD_PIDS 4096

/* A cell of the build's. */
struct build_cell {
    struct sandbox s; /* enough of one for file.h and process.h; id "" : there is none */
};

struct build_layers {
    struct image_layer *items;
    size_t n;
};

/* A stage, as far as it has got. */
struct build_stage {
    bool begun;
    struct image_config config; /* its env is scope.env, until the end */
    struct build_layers layers;
    struct scope scope;
    json_t *health; /* the configuration's Healthcheck; NULL: none */
    char *author;
    bool cmd_set;           /* by a step of this file, not by the base */
    struct build_cell cell; /* for a COPY --from it; made when first needed */
};

struct build_queued;
struct build_key;

struct build {
    struct core *core;
    struct build *next; /* in core->builds */
    char owner[OWNER_MAX];
    char name[IMAGE_NAME_MAX];
    char *dockerfile_name, *target, *network;
    bool no_cache, public, trusted;
    bool recipe;              /* no Dockerfile: `file` was made from one */
    char home[OWNER_MAX + 8]; /* of the step's user */
    char *base_owner, *username, *password, *user,
        *workdir; /* the recipe's; NULL where not given */
    struct image_hold hold;
    bool holds, listed;

    struct scope_world world;
    struct build_cell context;
    struct archiver *unpacking;
    struct ignore ignore;
    struct dockerfile file;
    struct plan plan;
    struct build_stage *stages; /* as many as the file has */
    struct image_layer scratch; /* what an empty stage's cell stands on */
    struct {
        char name[IMAGE_NAME_MAX];
        struct build_cell cell;
    } others[8]; /* images that a COPY --from named */
    size_t n_others;

    unsigned step; /* the number of the one at hand, from 1 */
    unsigned line; /* its line, or of what failed */

    pthread_t thread;
    bool started;
    int alive[2]; /* a socket pair: [1] is closed to cancel, and [0] then shows it */
    int more_fd;  /* an eventfd: something is queued */
    pthread_mutex_t lock;
    pthread_cond_t room;
    struct build_queued *head, *tail;
    size_t queued_bytes;
    bool cancelled;
};

DEFINE_FREEP(char **, strings_free)

/* build.c */
int build_tell(struct build *b, struct build_event *event); /* takes its text; -ECANCELED */
int build_warn(struct build *b, unsigned line, const char *text);
bool build_cancelled(struct build *b);

/* build_cell.c */
int build_cell_make(struct build *b, const char *tree, bool works, struct build_cell *ret_cell,
                    struct err *err);
void build_cell_done(struct build *b, struct build_cell *cell); /* fine for none */

/* build_context.c */
int build_context_open(struct build *b, struct err *err); /* to be filled by build_write */
int build_context_make(struct build *b, struct err *err); /* only the cell, and what it stands on */
/* Begins to unpack under `path` of the context; build_context_close ends it. */
int build_context_begin(struct build *b, const char *path, struct err *err);
int build_context_close(struct build *b, struct err *err); /* the tar is at its end */
/* Dockerfile and rules. */
int build_context_read(struct build *b, struct err *err);

/* build_recipe.c */
int build_recipe_take(struct build *b, const struct build_recipe *recipe, struct err *err);
/* What its COPYs take, into the context's cell. */
int build_recipe_unpack(struct build *b, struct err *err);
/* How words of its steps are expanded: as text, in which variables count. */
struct expand build_recipe_expand(struct build *b, struct build_stage *st);
/* Who works where at first, whatever the base image says. */
int build_recipe_settle(struct build *b, struct build_stage *st, struct err *err);
/* A step failed with r: in the words of E2B's builder, which programs look for. Answers r. */
int build_recipe_fail(const struct dockerfile_step *step, int r, struct err *err);
void build_recipe_reword(struct err *err); /* a line is a step */
void build_recipe_done(struct build *b);

/* build_run.c */
int build_run(struct build *b, struct err *err);
const char *build_chain(const struct build_stage *st); /* "": no layer yet */
/* The cell that the next step of the stage works in. */
int build_work_cell(struct build *b, const struct build_stage *st, struct build_cell *ret_cell,
                    struct err *err);
/* A step's line in the stage's history, with or without a layer. `made_ms` is when the step was
 * done, which is then the image's time too; 0: when the one before it was. A step from the cache
 * was done back then, and one that changes only the configuration happens at no time of its own,
 * so the same file from the cache is the same image, to the byte. */
int build_record(struct build_stage *st, const char *diff_id, const char *created_by,
                 int64_t made_ms, struct err *err);
/* What the cell's files have become is a layer (or none), in the cache under `key`. */
int build_commit(struct build *b, struct build_stage *st, struct build_cell *cell, const char *key,
                 const char *created_by, struct err *err);
/* 1: the step was done before, and is done. */
int build_from_cache(struct build *b, struct build_stage *st, const char *key,
                     const char *created_by, struct err *err);

/* build_step.c: a step that changes no files. */
int build_configure(struct build *b, struct build_stage *st, const struct dockerfile_step *step,
                    struct err *err);
int build_env(const struct build_stage *st, bool args, struct pairs *ret_env);
/* The exec form as it is, the other behind the stage's shell. Replaces *list. */
int build_argv(const struct build_stage *st, const struct dockerfile_step *step, char ***list);

/* build_exec.c, build_copy.c */
int build_exec(struct build *b, struct build_stage *st, const struct dockerfile_step *step,
               struct err *err);
int build_copy(struct build *b, size_t stage, const struct dockerfile_step *step, struct err *err);
int build_workdir(struct build *b, struct build_stage *st, const struct dockerfile_step *step,
                  struct err *err);

/* build_source.c: what a COPY or ADD takes. */
struct build_source {
    struct build_cell *cell; /* where it lies; NULL: a heredoc */
    const struct dockerfile_heredoc *text;
    char *path;     /* absolute */
    char *relative; /* to the context, for its rules; NULL: none apply */
    const char *name;
    char *link; /* a symbolic link that names nothing here; NULL: it is none */
    bool is_dir;
};
struct build_sources {
    struct build_source *items;
    size_t n;
};
int build_sources_find(struct build *b, size_t stage, const struct dockerfile_step *step,
                       struct build_sources *ret_sources, struct err *err);
void build_sources_done(struct build_sources *sources);
/* Each entry of it, and then its bytes: `e` is NULL for those. A directory's own entry is not
 * among them, and paths are relative to it. */
typedef int build_source_fn(void *ctx, const struct file_entry *e, const char *p, size_t n,
                            struct err *err);
int build_source_each(struct build *b, const struct build_source *src, build_source_fn *fn,
                      void *ctx, struct err *err);
/* build_source_hash.c: adds names, modes and contents, in whatever order they came; `owners` too. */
int build_source_hash(struct build *b, const struct build_source *src, bool owners,
                      struct build_key *key, struct err *err);

/* build_cache.c: the name of a step, made of all that its result depends on. */
struct build_key {
    struct digest *hash;
    int r;
};
void build_key_begin(struct build_key *key, const struct build *b, const char *kind,
                     const char *parent);
void build_key_text(struct build_key *key, const char *text);         /* NULL differs from "" */
void build_key_bytes(struct build_key *key, const void *p, size_t n); /* without its length */
void build_key_number(struct build_key *key, uint64_t v);
int build_key_end(struct build_key *key, char ret_key[DIGEST_SIZE], struct err *err);
/* 1, a chain ("": the step changed nothing) and when the step was done (0: unknown); 0. */
int build_cache_find(struct build *b, const char *key, char ret_chain[DIGEST_SIZE],
                     int64_t *ret_made_ms);
void build_cache_put(struct build *b, const char *key, const char *chain, int64_t made_ms);

/* build_pull.c: an image that is not here, from its registry. */
int build_pull(struct build *b, const char *name, struct err *err);

/* build_image.c */
int build_stage_begin(struct build *b, size_t i, struct err *err);
void build_stage_done(struct build *b, struct build_stage *st);
int build_finish(struct build *b, struct build_stage *st, struct image *ret_image, struct err *err);
