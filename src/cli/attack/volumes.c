/* volumes - what passes between two sandboxes that share a volume. */
#include <string.h>

#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define AT "/attack-volume"

/* text: the first sandbox's command, more: the second's, number: the second may only read. */
static void run_between(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *line = NULL;
    char *other = NULL;
    const char *box = stage_volume_box(a, t);
    if (!box)
        return;
    json_t *more = json_pack("{s:[{s:s,s:s,s:b}]}", "volumes", "volume", a->volume, "path", AT,
                             "read_only", self->number != 0);
    if (stage_make(a, &a->red, more, &other, &err) < 0) {
        /* Where the kernel cannot keep sockets apart, a volume is in one sandbox at a time. */
        if (strstr(err.msg, "--share-volumes"))
            trial_held(t, "the volume is in one sandbox at a time");
        else
            trial_error(t, "no second sandbox: %s", err.msg);
        return;
    }
    _cleanup_free_ char *path = xasprintf(AT "/%s", self->name);
    if (talk_start(a->red.client, box, &line, self->text, path, NULL) < 0)
        trial_error(t, "the first end does not start");
    else if (strncmp(line, "ready", 5) != 0)
        trial_held(t, "it cannot be made there: %.60s", line);
    else {
        _cleanup_free_ char *said = talk_exec(a->red.client, other, NULL, self->more, path, NULL);
        if (!said)
            trial_error(t, "the second end does not start");
        else if (strncmp(said, "connected", 9) == 0)
            trial_broke(t, "the two sandboxes are connected through the volume");
        else
            trial_held(t, "%.60s", said);
    }
    (void)stage_delete(a, &a->red, &other, t);
    (void)stage_delete(a, &a->red, &a->volume_box, t);
}

/* clang-format off */
static const struct attempt_row rows[] = {
    { .name = "volume-socket", .category = "volumes", .title = "a socket on a shared volume", .run = run_between, .text = "listen", .more = "connect" },
    { .name = "volume-socket-read-only", .category = "volumes", .title = "a socket on a volume that one may only read", .run = run_between, .text = "listen", .more = "connect", .number = 1 },
    { .name = "volume-fifo", .category = "volumes", .title = "a pipe on a shared volume", .run = run_between, .text = "fifo-read", .more = "fifo-write" },
};
/* clang-format on */

const struct attempt_table attack_volumes = { rows, ARRAY_LEN(rows) };
