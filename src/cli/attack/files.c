/* files - paths, links and special files that lead out of the sandbox, hang, or have no end. A
 * file on this host holds a random word: an answer with that word came from outside. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/attack/attack.h"
#include "cli/attack/wire.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define SOON_MS 10000
#define READ_MAX (8 << 20) /* enough to call a file endless */

struct sink {
    struct buf text;
};

static int on_bytes(void *arg, const void *p, size_t n)
{
    struct sink *s = arg;
    return buf_append(&s->text, p, n); /* -EMSGSIZE ends the transfer */
}

/* GET a path inside a sandbox, unchanged. */
static long read_path(struct attack *a, const char *box, const char *encoded, struct sink *s)
{
    struct err ignored = ERR_INIT;
    _cleanup_free_ char *path = xasprintf("/v1/sandboxes/%s/files?path=%s", box, encoded);
    s->text = (struct buf)BUF_INIT(READ_MAX);
    _cleanup_(request_done) struct request call = {
        .method = "GET", .path = path, .sink = on_bytes, .arg = s
    };
    (void)client_perform(a->red.client, &call, &ignored);
    return call.status;
}

/* text: what precedes the secret's path, more: what replaces its slashes. */
static void run_path(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf path = BUF_INIT(8192);
    struct sink s = { BUF_INIT(READ_MAX) };
    const char *box = stage_box(a, t);
    if (!box)
        return;
    if (!a->secret_path) {
        trial_not_here(t, "the daemon is on another machine");
        return;
    }
    xputs(&path, self->text);
    for (const char *p = a->secret_path; *p; p++)
        xputs(&path, *p == '/' ? self->more : (char[]){ *p, '\0' });
    long status = read_path(a, box, path.data, &s);
    if (s.text.data && memmem(s.text.data, s.text.len, a->secret, strlen(a->secret)))
        trial_broke(t, "a file of the host came back");
    else if (status == 0 || status >= 500)
        trial_broke(t, "the answer is %ld", status);
    else
        trial_held(t, "%ld", status);
    buf_done(&s.text);
    buf_done(&path);
}

/* A download of a special file must end, and soon. */
static void run_special(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct sink s = { BUF_INIT(READ_MAX) };
    const char *box = stage_box(a, t);
    if (!box)
        return;
    if (self->more)
        (void)talk_box(a->red.client, "POST", box, "/exec", json_pack("{s:s}", "shell", self->more),
                       NULL);
    int64_t began = clock_mono_ms();
    long status = read_path(a, box, self->text, &s);
    int64_t took = clock_mono_ms() - began;
    if (s.text.len >= READ_MAX - 65536)
        trial_broke(t, "it has no end: %zu bytes came", s.text.len);
    else if (took > SOON_MS)
        trial_broke(t, "the answer took %lld ms", (long long)took);
    else if (status == 0 || status >= 500)
        trial_broke(t, "the answer is %ld", status);
    else
        trial_held(t, "%ld after %lld ms", status, (long long)took);
    buf_done(&s.text);
}

static long put(struct attack *a, const char *box, const char *where, const char *text)
{
    _cleanup_free_ char *path = xasprintf("/v1/sandboxes/%s/files?path=%s", box, where);
    return talk_raw(a->red.client, "PUT", path, "application/octet-stream", text, strlen(text),
                    NULL);
}

static void run_put(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    const char *box = stage_box(a, t);
    if (!box)
        return;
    long status = put(a, box, self->text, "attack");
    if (status >= 400 && status < 500)
        trial_held(t, "%ld", status);
    else
        trial_broke(t, "writing %s: %ld", self->text, status);
}

/* A body shorter than its length must leave the file as it was. */
static void run_cut(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    char host[256];
    struct sink s = { BUF_INIT(READ_MAX) };
    struct buf b = BUF_INIT(65536);
    const char *box = stage_box(a, t);
    _cleanup_fd_ int fd = wire_open(a);
    if (!box || fd < 0 || put(a, box, "/tmp/attack-cut", "whole") < 200) {
        trial_error(t, "cannot begin");
        return;
    }
    (void)buf_printf(&b,
                     "PUT /v1/sandboxes/%s/files?path=/tmp/attack-cut HTTP/1.1\r\nHost: %s\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nhalf",
                     box, wire_host(a, host, sizeof(host)), a->red.key);
    (void)wire_send(fd, b.data, b.len);
    (void)shutdown(fd, SHUT_RDWR);
    buf_done(&b);
    (void)usleep(500 * 1000);
    (void)read_path(a, box, "/tmp/attack-cut", &s);
    if (s.text.len == 5 && memcmp(s.text.data, "whole", 5) == 0)
        trial_held(t, "the file is as it was");
    else
        trial_broke(t, "half a body took the place of the file: %zu bytes", s.text.len);
    buf_done(&s.text);
}

/* A directory and a link to / change places while the API writes below it: nothing may appear in
 * the link's target. */
static void run_race(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct sink s = { BUF_INIT(READ_MAX) };
    const char *box = stage_box(a, t);
    int bad = 0, n = 0;
    if (!box)
        return;
    (void)talk_box(
        a->red.client, "POST", box, "/exec",
        json_pack("{s:s}", "shell",
                  "mkdir -p /tmp/race/one /tmp/outside; ln -sfn /tmp/outside /tmp/race/two"),
        NULL);
    (void)talk_box(
        a->red.client, "POST", box, "/processes",
        json_pack("{s:[s,s,s,s]}", "argv", INSIDE_PATH, "swap", "/tmp/race/one", "/tmp/race/two"),
        NULL);
    for (int64_t end = clock_mono_ms() + 3000; clock_mono_ms() < end; n++) {
        long status = talk_box(a->red.client, "DELETE", box,
                               "/files?recursive=true&force=true&path=/tmp/race/one/x", NULL, NULL);
        bad += status >= 500 || status == 0;
    }
    if (a->secret_path) {
        _cleanup_free_ char *out = xasprintf("/tmp/race/one%s", a->secret_path);
        for (int i = 0; i < 100; i++) {
            (void)read_path(a, box, out, &s);
            if (s.text.data && memmem(s.text.data, s.text.len, a->secret, strlen(a->secret)))
                trial_broke(t, "a file of the host came back");
            buf_done(&s.text);
        }
    }
    if (bad)
        trial_broke(t, "%d of %d answers are failures of the daemon", bad, n);
    trial_held(t, "%d operations in the middle of it", n);
    (void)stage_delete(a, &a->red, &a->box, t);
}

/* ---- fields of an exec ---- */

/* text: the member; more: its value, as JSON. */
static void run_exec(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    const char *box = stage_box(a, t);
    if (!box)
        return;
    json_t *body = json_pack("{s:[s,s,s]}", "argv", INSIDE_PATH, "get", "burn-cpu");
    (void)json_object_set_new(body, self->text,
                              json_loads(self->more, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
    long status = talk_box(a->red.client, "POST", box, "/exec", body, &answer);
    if (status >= 400 && status < 500)
        trial_held(t, "%ld %s", status, talk_code(answer));
    else
        trial_broke(t, "%s %s: %ld", self->text, self->more, status);
}

static void run_huge_argument(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    _cleanup_json_ json_t *answer = NULL;
    _cleanup_free_ char *word = xcalloc((size_t)self->number + 1, 1);
    const char *box = stage_box(a, t);
    if (!box)
        return;
    memset(word, 'x', (size_t)self->number);
    long status = talk_box(a->red.client, "POST", box, "/exec",
                           json_pack("{s:[s,s]}", "argv", INSIDE_PATH, word), &answer);
    if (status == 400 || status == 413)
        trial_held(t, "%ld %s", status, talk_code(answer));
    else
        trial_broke(t, "an argument of %ld bytes: %ld", self->number, status);
}

#define PATH(name_, title_, before_, slash_)                                          \
    {                                                                                 \
        .name = "file-" name_, .category = "files", .title = title_, .run = run_path, \
        .text = before_, .more = slash_                                               \
    }
#define SPECIAL(name_, title_, path_, shell_)                                            \
    {                                                                                    \
        .name = "file-" name_, .category = "files", .title = title_, .run = run_special, \
        .text = path_, .more = shell_                                                    \
    }
#define PUT(name_, title_, path_)                                                        \
    {                                                                                    \
        .name = "file-put-" name_, .category = "files", .title = title_, .run = run_put, \
        .text = path_                                                                    \
    }
#define EXEC(name_, title_, member_, value_)                                          \
    {                                                                                 \
        .name = "exec-" name_, .category = "files", .title = title_, .run = run_exec, \
        .text = member_, .more = value_                                               \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    PATH("dotdot", "a path with ..", "../../../../../../../..", "/"),
    PATH("dotdot-absolute", "an absolute path with ..", "/tmp/../../../../../..", "/"),
    PATH("encoded", "a path with %2e%2e", "%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e", "%2f"),
    PATH("encoded-twice", "a path that is encoded twice", "%252e%252e%252f%252e%252e", "%252f"),
    PATH("backslash", "a path with backslashes", "..%5c..%5c..%5c..", "%5c"),
    PATH("overlong", "dots in over-long UTF-8", "%c0%ae%c0%ae/%c0%ae%c0%ae", "%c0%af"),
    PATH("nul", "a NUL in a path", "/etc/passwd%00", "/"),
    PATH("double-slash", "a path with //", "//..//..", "//"),
    PATH("proc-root", "by /proc/1/root", "/proc/1/root", "/"), PATH("proc-cwd", "by /proc/1/cwd", "/proc/1/cwd/../../..", "/"),
    PATH("self-root", "by /proc/self/root", "/proc/self/root/..", "/"), PATH("self-fd", "by a descriptor", "/proc/self/fd/3/../../..", "/"),
    PATH("task-root", "by another task's root", "/proc/1/task/1/root", "/"),
    SPECIAL("fifo", "download a pipe", "/tmp/attack-fifo", "mkfifo /tmp/attack-fifo"),
    SPECIAL("zero", "download /dev/zero", "/dev/zero", NULL), SPECIAL("random", "download /dev/urandom", "/dev/urandom", NULL),
    SPECIAL("terminal", "download a terminal", "/dev/ptmx", NULL), SPECIAL("kmsg", "download /proc/kmsg", "/proc/kmsg", NULL),
    SPECIAL("mem", "download init's memory", "/proc/1/mem", NULL), SPECIAL("pagemap", "download a map of pages", "/proc/self/pagemap", NULL),
    SPECIAL("link-loop", "a link to itself", "/tmp/attack-loop", "ln -sf attack-loop /tmp/attack-loop"),
    SPECIAL("directory", "download a directory", "/etc", NULL),
    PUT("directory", "write over a directory", "/etc"), PUT("proc", "write below /proc/sys", "/proc/sys/kernel/hostname"),
    PUT("dev", "write into /dev", "/dev/attack"), PUT("mount", "write over a mount", "/proc"), PUT("null", "write over /dev/null", "/dev/null"),
    { .name = "file-put-cut", .category = "files", .title = "a body that is cut off", .run = run_cut },
    { .name = "file-race", .category = "files", .title = "a directory that becomes a link meanwhile", .run = run_race },
    EXEC("env-equals", "a variable's name with =", "env", "{\"a=b\":\"c\"}"),
    EXEC("env-nul", "a variable with a NUL", "env", "{\"a\":\"b\\u0000c\"}"),
    EXEC("cwd-relative", "a working directory with ..", "cwd", "\"../../..\""),
    EXEC("cwd-descriptor", "a descriptor as working directory", "cwd", "\"/proc/self/fd/7\""),
    EXEC("user-minus", "user -1", "user", "\"-1\""), EXEC("user-max", "user 4294967295", "user", "\"4294967295\""),
    EXEC("user-out", "a user outside of the range", "user", "\"70000\""), EXEC("user-option", "a user that is an option", "user", "\"--help\""),
    { .name = "exec-huge-argument", .category = "files", .title = "an argument of 2 MB", .run = run_huge_argument, .number = 2 << 20 },
};
/* clang-format on */

const struct attempt_table attack_files = { rows, ARRAY_LEN(rows) };
