/* A template build's form at rest. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "core/template_build_private.h"

int template_build_save(struct core *core, const struct template_build *b, struct err *err)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < b->n_tags; i++)
        (void)json_array_append_new(list, json_string(b->tags[i]));
    _cleanup_free_ char *tags = list ? json_dumps(list, JSON_COMPACT) : NULL;
    json_decref(list);
    if (!tags)
        return err_set(err, ENOMEM, "cannot allocate a build");
    struct store_template_build row = { .id = b->id,
                                        .owner = b->owner,
                                        .template = b->template,
                                        .tags = tags,
                                        .step = b->step,
                                        .message = b->message,
                                        .state = b->state,
                                        .cpu_millis = b->cpu_millis,
                                        .memory_bytes = (int64_t)b->memory_bytes,
                                        .disk_bytes = (int64_t)b->disk_bytes,
                                        .created_ms = b->created_ms,
                                        .updated_ms = b->updated_ms,
                                        .finished_ms = b->finished_ms };
    return store_template_build_put(core->store, &row, err);
}

static void tags_from_json(const char *text, struct template_build *b)
{
    json_t *list = json_loads(text, 0, NULL);
    for (size_t i = 0; i < json_array_size(list) && i < TEMPLATE_TAGS_MAX; i++) {
        const char *tag = json_string_value(json_array_get(list, i));
        if (tag && name_valid(tag))
            (void)snprintf(b->tags[b->n_tags++], sizeof(b->tags[0]), "%s", tag);
    }
    json_decref(list);
}

void template_build_from_row(const struct store_template_build *row, struct template_build *b)
{
    *b = (struct template_build){ .state = (enum template_build_state)(row->state & 3),
                                  .cpu_millis = (uint32_t)row->cpu_millis,
                                  .memory_bytes = (uint64_t)row->memory_bytes,
                                  .disk_bytes = (uint64_t)row->disk_bytes,
                                  .created_ms = row->created_ms,
                                  .updated_ms = row->updated_ms,
                                  .finished_ms = row->finished_ms };
    (void)snprintf(b->id, sizeof(b->id), "%s", row->id);
    (void)snprintf(b->owner, sizeof(b->owner), "%s", row->owner);
    (void)snprintf(b->template, sizeof(b->template), "%s", row->template);
    (void)snprintf(b->step, sizeof(b->step), "%s", row->step);
    (void)snprintf(b->message, sizeof(b->message), "%s", row->message);
    tags_from_json(row->tags, b);
    if (b->state == BUILD_WAITING || b->state == BUILD_RUNNING) {
        b->state = BUILD_BROKEN;
        (void)snprintf(b->step, sizeof(b->step), "base");
        (void)snprintf(b->message, sizeof(b->message),
                       "the daemon was restarted before the build had ended; build it again");
    }
}
