#include "cli/follow.h"

#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/object.h"

struct watch {
    struct progress progress;
    follow_show_fn show;
    json_t *last;
    bool failed;
    struct err err;
};

static int on_event(void *arg, const json_t *event)
{
    struct watch *w = arg;
    const char *type = member_text(event, "type");
    if (strcmp(type, "error") == 0) {
        w->failed = true;
        (void)err_set(&w->err, EIO, "%s", member_text(event, "message"));
    } else if (strcmp(type, "ping") != 0 && !w->show(&w->progress, event)) {
        json_decref(w->last);
        w->last = json_deep_copy(event);
    }
    return 0;
}

int follow(struct cli *cli, const char *path, const json_t *body, follow_show_fn show,
           json_t **ret_last, struct err *err)
{
    struct watch w = { .show = show, .err = ERR_INIT };
    struct client *client = cli_client(cli, err);
    if (!client)
        return -EIO;
    _cleanup_free_ char *text = body ? json_dumps(body, JSON_COMPACT) : strdup("{}");
    if (!text)
        return err_set(err, ENOMEM, "out of memory");
    _cleanup_(request_done) struct request call = { .method = "POST",
                                                    .path = path,
                                                    .body = text,
                                                    .body_len = strlen(text),
                                                    .body_type = "application/json",
                                                    .on_line = on_event,
                                                    .arg = &w,
                                                    .timeout_s = -1 };
    progress_init(&w.progress, cli->json);
    int r = client_perform(client, &call, err);
    progress_done(&w.progress);
    explicit_bzero(text, strlen(text)); /* a password may be in it */
    if (r >= 0 && w.failed) {
        *err = w.err;
        r = -EIO;
    }
    if (r >= 0 && !w.last)
        r = err_set(err, EPIPE, "the daemon went away before it was done");
    if (r < 0)
        json_decref(w.last);
    else
        *ret_last = w.last;
    return r;
}
