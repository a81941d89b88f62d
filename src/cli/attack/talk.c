#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define ANSWER_S 60
#define START_MS 30000
#define WORDS_MAX 8

long talk_raw(struct client *c, const char *method, const char *path, const char *type,
              const void *bytes, size_t n, json_t **ret_answer)
{
    struct err ignored = ERR_INIT;
    _cleanup_(request_done) struct request call = { .method = method,
                                                    .path = path,
                                                    .body = bytes,
                                                    .body_len = n,
                                                    .body_type = type,
                                                    .timeout_s = ANSWER_S };
    (void)client_perform(c, &call, &ignored);
    if (ret_answer)
        *ret_answer = take_ptr(call.json);
    return call.status;
}

long talk(struct client *c, const char *method, const char *path, json_t *body, json_t **ret_answer)
{
    _cleanup_json_ json_t *b = body;
    _cleanup_free_ char *text = b ? json_dumps(b, JSON_COMPACT) : NULL;
    return talk_raw(c, method, path, text ? "application/json" : NULL, text,
                    text ? strlen(text) : 0, ret_answer);
}

long talk_box(struct client *c, const char *method, const char *box, const char *rest, json_t *body,
              json_t **ret_answer)
{
    _cleanup_free_ char *path = xasprintf("/v1/sandboxes/%s%s", box, rest);
    return talk(c, method, path, body, ret_answer);
}

const char *talk_code(const json_t *answer)
{
    return member_text(json_object_get(answer, "error"), "code");
}

static json_t *words_of(const char *word, va_list ap)
{
    json_t *argv = json_pack("[s]", INSIDE_PATH);
    for (int i = 0; word && i < WORDS_MAX; i++, word = va_arg(ap, const char *))
        (void)json_array_append_new(argv, json_string(word));
    return argv;
}

char *talk_exec(struct client *c, const char *box, int *ret_code, const char *word, ...)
{
    _cleanup_json_ json_t *answer = NULL;
    va_list ap;
    va_start(ap, word);
    json_t *argv = words_of(word, ap);
    va_end(ap);
    long status = talk_box(
        c, "POST", box, "/exec",
        json_pack("{s:o,s:i,s:i}", "argv", argv, "timeout_s", ANSWER_S - 10, "output_limit", 65536),
        &answer);
    if (ret_code)
        *ret_code = (int)member_int(answer, "exit_code");
    return status == 200 ? xstrdup(member_text(answer, "stdout")) : NULL;
}

struct first_line {
    struct buf text;
};

static int on_line(void *arg, const json_t *event)
{
    struct first_line *l = arg;
    if (strcmp(member_text(event, "type"), "stdout") == 0)
        xputs(&l->text, member_text(event, "data"));
    return 0;
}

/* The output of a process so far. */
static char *printed(struct client *c, const char *box, int64_t n)
{
    struct err ignored = ERR_INIT;
    _cleanup_free_ char *path =
        xasprintf("/v1/sandboxes/%s/processes/%lld/output?since=0&follow=false", box, (long long)n);
    struct first_line l = { .text = BUF_INIT(65536) };
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = path, .on_line = on_line, .arg = &l
    };
    (void)client_perform(c, &call, &ignored);
    char *text = buf_steal(&l.text);
    return text ? text : xstrdup("");
}

static bool has_ended(struct client *c, const char *box, int64_t n)
{
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *rest = xasprintf("/processes/%lld", (long long)n);
    return talk_box(c, "GET", box, rest, NULL, &answer) != 200 ||
           strcmp(member_text(answer, "state"), "running") != 0;
}

int64_t talk_start(struct client *c, const char *box, char **ret_line, const char *word, ...)
{
    _cleanup_json_ json_t *answer = NULL;
    va_list ap;
    va_start(ap, word);
    json_t *argv = words_of(word, ap);
    va_end(ap);
    long status = talk_box(c, "POST", box, "/processes", json_pack("{s:o}", "argv", argv), &answer);
    if (status != 201)
        return -EIO;
    int64_t n = member_int(answer, "process"), until = clock_mono_ms() + START_MS;
    while (clock_mono_ms() < until) {
        bool ended = has_ended(c, box, n); /* before the look: what it printed last is seen */
        _cleanup_free_ char *text = printed(c, box, n);
        if (strchr(text, '\n')) {
            text[strcspn(text, "\n")] = '\0';
            *ret_line = take_ptr(text);
            return n;
        }
        if (ended)
            return -ECHILD;
        (void)usleep(20 * 1000);
    }
    return -ETIMEDOUT;
}
