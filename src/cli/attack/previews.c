/* previews - a sandbox's ports from outside: which headers pass in, and who may enter. */
#include <string.h>

#include "cli/attack/attack.h"
#include "cli/attack/wire.h"
#include "cli/object.h"
#include "cli/xmem.h"

#define PORT "8642"
#define QUIET_MS 3000

static char *server_box; /* runs a server that shows each request's head; removed with its team */

static const char *box_of(struct attack *a, struct trial *t)
{
    struct err err = ERR_INIT;
    _cleanup_free_ char *line = NULL;
    if (server_box)
        return server_box;
    if (!a->url) {
        trial_not_here(t, "no TCP address of the API is known; --at names it");
        return NULL;
    }
    if (stage_make(a, &a->blue, NULL, &server_box, &err) < 0 ||
        talk_start(a->blue.client, server_box, &line, "serve", PORT, NULL) < 0)
        trial_error(t, "no server in a sandbox: %s", err.msg);
    return t->said ? NULL : server_box;
}

/* Send one request to the preview, with these lines behind Host. */
static int ask(struct attack *a, const char *box, const char *host, const char *lines,
               struct buf *answer)
{
    char at[256];
    struct buf b = BUF_INIT(65536);
    _cleanup_fd_ int fd = wire_open(a);
    const char *port = strrchr(wire_host(a, at, sizeof(at)), ':');
    _cleanup_free_ char *own = xasprintf(PORT "-%s.localhost%s", box, port ? port : "");
    (void)buf_printf(&b, "GET / HTTP/1.1\r\nHost: %s\r\n%s\r\n", host ? host : own, lines);
    if (fd >= 0 && wire_send(fd, b.data, b.len))
        (void)wire_read(fd, answer, QUIET_MS);
    buf_done(&b);
    return wire_status(answer);
}

/* text: header lines to send; more: text that must not come back from inside. */
static void run_stripped(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf answer = BUF_INIT(1 << 20), lines = BUF_INIT(65536);
    const char *box = box_of(a, t);
    if (!box)
        return;
    const char *at = strstr(self->text, "KEY");
    xputn(&lines, self->text, at ? (size_t)(at - self->text) : strlen(self->text));
    if (at) {
        xputs(&lines, a->blue.key);
        xputs(&lines, at + 3);
    }
    xputs(&lines, "Connection: close\r\n");
    int status = ask(a, box, NULL, lines.data, &answer);
    const char *needle = self->more ? self->more : a->blue.key;
    if (status == 200 && strstr(answer.data, needle))
        trial_broke(t, "the sandbox gets '%.20s...'", needle);
    else if (status == 0)
        trial_broke(t, "no answer");
    else
        trial_held(t, "%d without it", status);
    buf_done(&answer);
    buf_done(&lines);
}

static void run_cookie(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf answer = BUF_INIT(1 << 20);
    const char *box = box_of(a, t);
    if (!box)
        return;
    int status = ask(a, box, NULL, "Connection: close\r\n", &answer);
    if (status != 200)
        trial_error(t, "the preview answers %d", status);
    else if (strcasestr(answer.data, "Domain=localhost"))
        trial_broke(t, "a cookie for all previews passes");
    else
        trial_held(t, "the cookie stays with its own host");
    buf_done(&answer);
}

static void run_smuggled(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf answer = BUF_INIT(1 << 20);
    const char *box = box_of(a, t);
    if (!box)
        return;
    int status = ask(a, box, NULL, self->text, &answer);
    if (status >= 200 && status < 300)
        trial_broke(t, "it was passed on");
    else if (status == 0)
        trial_broke(t, "no answer");
    else
        trial_held(t, "%d", status);
    buf_done(&answer);
}

static void run_private(struct attack *a, const struct attempt_row *self, struct trial *t)
{
    struct buf answer = BUF_INIT(1 << 20), lines = BUF_INIT(4096);
    const char *box = box_of(a, t);
    if (!box)
        return;
    (void)talk_box(a->blue.client, "PATCH", box, "", json_pack("{s:s}", "preview", "private"),
                   NULL);
    if (self->number)
        (void)buf_printf(&lines, "Authorization: Bearer %s\r\n", a->red.key);
    xputs(&lines, "Connection: close\r\n");
    int status = ask(a, box, NULL, lines.data, &answer);
    if (status == 200)
        trial_broke(t, "a private preview opens");
    else
        trial_held(t, "%d", status);
    (void)talk_box(a->blue.client, "PATCH", box, "", json_pack("{s:s}", "preview", "public"), NULL);
    buf_done(&answer);
    buf_done(&lines);
}

#define STRIPPED(name_, title_, lines_, needle_)                                                \
    {                                                                                           \
        .name = "preview-" name_, .category = "previews", .title = title_, .run = run_stripped, \
        .text = lines_, .more = needle_                                                         \
    }
#define SMUGGLED(name_, title_, lines_)                                                         \
    {                                                                                           \
        .name = "preview-" name_, .category = "previews", .title = title_, .run = run_smuggled, \
        .text = lines_                                                                          \
    }

/* clang-format off */
static const struct attempt_row rows[] = {
    STRIPPED("authorization", "Warren's key in Authorization", "Authorization: Bearer KEY\r\n", NULL),
    STRIPPED("api-key", "Warren's key in X-API-Key", "X-API-Key: KEY\r\n", NULL),
    STRIPPED("cookie", "Warren's key in a cookie", "Cookie: warren_key=KEY; a=b\r\n", NULL),
    STRIPPED("team-header", "a header of Warren's own", "X-Warren-User: forged-by-attack\r\n", "forged-by-attack"),
    STRIPPED("user-data", "forged data of a verified user", "X-Verified-User-Data: forged-by-attack\r\n", "forged-by-attack"),
    { .name = "preview-cookie-domain", .category = "previews", .title = "a cookie for all previews", .run = run_cookie },
    { .name = "preview-private", .category = "previews", .title = "enter a private preview", .run = run_private },
    { .name = "preview-private-foreign", .category = "previews", .title = "the same with another team's key", .run = run_private, .number = 1 },
    SMUGGLED("two-lengths", "two lengths to a preview", "Content-Length: 0\r\nContent-Length: 5\r\n"),
    SMUGGLED("length-and-chunks", "a length and chunks to a preview", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    SMUGGLED("folded", "a folded field to a preview", "X-A: a\r\n b\r\n"), SMUGGLED("two-hosts", "two hosts to a preview", "Host: other.localhost\r\n"),
    SMUGGLED("space-colon", "a blank before a colon to a preview", "X-A : b\r\n"),
};
/* clang-format on */

const struct attempt_table attack_previews = { rows, ARRAY_LEN(rows) };
