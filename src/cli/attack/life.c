/* life - whatever a sandbox does, it can be stopped and deleted, and nothing of it goes on. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define SILENCE_LIMIT_MS 12000 /* init recovers after 14 s, see src/attack/peer.c */

/* text: a shell command to run before the sandbox is deleted. */
static void run_delete(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct err err = ERR_INIT;
    char *box = NULL;
    if (stage_make(a, &a->red, NULL, &box, &err) < 0) {
        trial_error(t, "no sandbox: %s", err.msg);
        return;
    }
    (void)talk_box(a->red.client, "POST", box, "/processes",
                   json_pack("{s:s}", "shell", self->text), NULL);
    (void)usleep(700 * 1000);
    int64_t began = clock_mono_ms();
    if (stage_delete(a, &a->red, &box, t))
        trial_held(t, "deleted in %lld ms", (long long)(clock_mono_ms() - began));
}

/* Silence init: no descriptors, one processor, the lowest priority. */
static void run_silenced(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct err err = ERR_INIT;
    char *box = NULL;
    if (stage_make(a, &a->red, NULL, &box, &err) < 0) {
        trial_error(t, "no sandbox: %s", err.msg);
        return;
    }
    _cleanup_free_ char *said = talk_exec(a->red.client, box, NULL, "silence", "init", NULL);
    int64_t began = clock_mono_ms();
    long status =
        *self->text ? talk_box(a->red.client, "POST", box, self->text, json_object(), NULL) : 0;
    int64_t took = clock_mono_ms() - began;
    if (took > SILENCE_LIMIT_MS)
        trial_broke(t, "%s waits for an init that does not answer: %lld ms", self->text,
                    (long long)took);
    if (stage_delete(a, &a->red, &box, t))
        trial_held(t, "%.30s; %s %ld in %lld ms, and it can be deleted", said ? said : "?",
                   self->text, status, (long long)took);
}

static void run_orphan(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL, *all = NULL;
    const char *box = stage_box(a, t);
    size_t i;
    json_t *o;
    if (!box)
        return;
    (void)talk_box(a->red.client, "POST", box, "/processes",
                   json_pack("{s:[s,s,s]}", "argv", INSIDE_PATH, "orphan", "/tmp/attack-orphan"),
                   &answer);
    (void)usleep(500 * 1000);
    _cleanup_free_ char *rest =
        xasprintf("/processes/%lld", (long long)member_int(answer, "process"));
    long status = talk_box(a->red.client, "DELETE", box, rest, NULL, NULL);
    (void)usleep(500 * 1000);
    (void)talk_box(a->red.client, "GET", box, "/processes?all=true", NULL, &all);
    json_array_foreach(json_object_get(all, "processes"), i, o) {
        _cleanup_free_ char *argv = member_words(o, "argv", " ");
        if (strstr(argv, "orphan") && strcmp(member_text(o, "state"), "running") == 0)
            trial_broke(
                t, "a process that left its session goes on after all it belongs to was killed");
    }
    trial_held(t, "%ld, and it is gone", status);
}

static void run_deep(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct err err = ERR_INIT;
    char *box = NULL;
    if (stage_make(a, &a->red, NULL, &box, &err) < 0) {
        trial_error(t, "no sandbox: %s", err.msg);
        return;
    }
    _cleanup_free_ char *said =
        talk_exec(a->red.client, box, NULL, "deep", "/tmp/deep", "5000", NULL);
    long status =
        talk_box(a->red.client, "DELETE", box, "/files?recursive=true&path=/tmp/deep", NULL, NULL);
    if (status >= 500 || status == 0)
        trial_broke(t, "deleting the tree by the API: %ld", status);
    if (stage_delete(a, &a->red, &box, t))
        trial_held(t, "%.8s directories deep; the API says %ld, and the sandbox is gone",
                   said ? said : "?", status);
}

/* Four equal requests at once: none may fail with 500, and the sandbox must start again. */
static void run_twice(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *box = NULL;
    const char *id = stage_box(a, t);
    struct err err = ERR_INIT;
    if (!id)
        return;
    _cleanup_free_ char *path = xasprintf("/v1/sandboxes/%s%s", id, self->text);
    struct request calls[4];
    memset(calls, 0, sizeof(calls));
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        calls[i] = (struct request){ .method = "POST",
                                     .path = path,
                                     .body = "{}",
                                     .body_len = 2,
                                     .body_type = "application/json",
                                     .timeout_s = 60 };
        (void)client_start(a->red.client, &calls[i], &err);
    }
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        while (calls[i].active && !calls[i].done && client_poll(a->red.client, NULL, 0, 1000) == 0)
            ;
        if (calls[i].status == 0 || calls[i].status == 500)
            trial_broke(t, "one of four at once answers %ld", calls[i].status);
        request_done(&calls[i]);
    }
    (void)talk_box(a->red.client, "POST", id, "/start", NULL, NULL);
    if (talk_box(a->red.client, "GET", id, "", NULL, &box) != 200 ||
        strcmp(member_text(box, "state"), "running") != 0)
        trial_broke(t, "afterwards it is '%s'", member_text(box, "state"));
    trial_held(t, "four at once, and it runs");
    (void)stage_delete(a, &a->red, &a->box, t);
}

#define DELETE(name_, title_, shell_)                                                    \
    {                                                                                    \
        .name = "delete-" name_, .category = "life", .title = title_, .run = run_delete, \
        .text = shell_                                                                   \
    }
#define SILENCED(name_, title_, rest_)                                                          \
    {                                                                                           \
        .name = "silent-init-" name_, .category = "life", .title = title_, .run = run_silenced, \
        .text = rest_                                                                           \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    DELETE("fork-bomb", "delete a fork bomb", "f() { f | f & }; f; while :; do f; done"),
    DELETE("stopped", "delete stopped processes", "for i in 1 2 3 4 5 6 7 8; do sleep 600 & kill -STOP $!; done; sleep 600"),
    DELETE("deaf", "delete what ignores every signal", "trap '' TERM INT HUP QUIT USR1 USR2 PIPE; while :; do sleep 1; done"),
    DELETE("busy", "delete what computes", "while :; do :; done & while :; do :; done"),
    DELETE("writing", "delete what writes", "while :; do cat /proc/self/maps /etc/passwd > /tmp/w; done"),
    DELETE("printing", "delete what prints", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"),
    DELETE("vfork", "delete what waits for a child that is stopped", "sh -c 'kill -STOP $$' & wait"),
    SILENCED("delete", "delete with an init that is silenced", ""),
    SILENCED("pause", "pause with an init that is silenced", "/pause"),
    SILENCED("checkpoint", "checkpoint with an init that is silenced", "/checkpoints"),
    SILENCED("stop", "stop with an init that is silenced", "/stop"),
    { .name = "orphans", .category = "life", .title = "outlive what one belongs to", .run = run_orphan },
    { .name = "deep-directories", .category = "life", .title = "5,000 directories deep", .run = run_deep },
    { .name = "stop-at-once", .category = "life", .title = "stop four times at once", .run = run_twice, .text = "/stop" },
    { .name = "start-at-once", .category = "life", .title = "start four times at once", .run = run_twice, .text = "/start" },
};
/* clang-format on */

const struct attempt_table attack_life = { rows, ARRAY_LEN(rows) };
