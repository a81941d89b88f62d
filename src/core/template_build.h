/* template_build - a template on its way: asked for, then built from a recipe in the background.
 *
 * A build ends as an image of its own and, if it is well, as the template of each of its tags;
 * until then the tags stay what they were. Builds that are more than may run at once wait. The
 * record of one stays with the template; its log only as long as the daemon runs, for the last few.
 * Calls block for as long as the store takes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/boot.h"
#include "core/build.h"
#include "core/build_log.h"
#include "core/template.h"

#define TEMPLATE_BUILD_ID_SIZE 37 /* a uuid */
#define TEMPLATE_TAGS_MAX 16
#define TEMPLATE_IMAGES "template/" /* names of images that builds made: template/NAME:ID */

enum template_build_state { BUILD_WAITING, BUILD_RUNNING, BUILD_READY, BUILD_BROKEN };

struct template_build {
    char id[TEMPLATE_BUILD_ID_SIZE];
    char owner[OWNER_MAX];
    char template[NAME_MAX_LEN + 1]; /* without a tag */
    char tags[TEMPLATE_TAGS_MAX][NAME_MAX_LEN + 1];
    size_t n_tags;
    enum template_build_state state;
    uint32_t cpu_millis;
    uint64_t memory_bytes;
    uint64_t disk_bytes; /* that is free at first */
    int64_t created_ms, updated_ms, finished_ms;
    char step[BUILD_LOG_STEP_MAX]; /* BUILD_BROKEN: "base", "1", ... or "finalize" */
    char message[ERR_MSG_MAX];
};

/* Fills id and the times; the rest says what is wanted, 0 for what is usual. */
int template_build_request(struct core *core, struct template_build *b, struct err *err);

/* What to do. All of it is copied. */
struct template_recipe {
    const char *image, *template; /* from which; the other is NULL */
    struct build_recipe steps;    /* user and workdir: where the template says nothing */
    const char *network;          /* of its steps, and of its sandboxes unless `template` has one */
    struct boot boot;             /* argv and ready; from a template, its own if there is neither */
    bool no_cache;
    bool trusted;
};
/* -EALREADY, build_started, for one that was. */
int template_build_start(struct core *core, const char *owner, const char *template, const char *id,
                         const struct template_recipe *recipe, struct err *err);

/* -ENOENT, build_not_found. */
int template_build_get(struct core *core, const char *owner, const char *template, const char *id,
                       struct template_build *ret_b, struct err *err);
/* Of a template, or of all (NULL), the newest first; free(*ret_list). */
int template_build_list(struct core *core, const char *owner, const char *template,
                        struct template_build **ret_list, size_t *ret_n, struct err *err);

/* Lines of the log from the one at `offset` on that are of this level or above, at most `max` of
 * them; each is handed to fn, which may not block. */
typedef void template_build_line_fn(void *ctx, const struct build_log_line *line);
int template_build_log(struct core *core, const char *owner, const char *template, const char *id,
                       size_t offset, size_t max, enum build_log_level level,
                       template_build_line_fn *fn, void *ctx, struct err *err);

/* The build that made this template; one that nobody built gets an id that stays the same. */
void template_build_of(const struct template *t, char ret_id[TEMPLATE_BUILD_ID_SIZE]);

/* The template with all its tags and builds. -ENOENT, template_not_found. */
int template_forget(struct core *core, const char *owner, const char *name, struct err *err);
/* Removes images of builds that no template has any more. */
void template_images_sweep(struct core *core, const char *owner);
