#include "broker/page.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"

#define BODY_MAX 4096
#define MESSAGE_SIZE 256

struct row {
    unsigned status;
    const char *reason, *code, *message;
    const char *more; /* of the message; what is before it E2B's programs compare. NULL: none */
};

static const struct row rows[] = {
    [PAGE_BAD_REQUEST] = { 400, "Bad Request", "invalid_request",
                           "This is not an HTTP/1.1 request that can be passed on safely", NULL },
    [PAGE_HEAD_TOO_LARGE] = { 431, "Request Header Fields Too Large", "head_too_large",
                              "The head of the request is over 32 KiB or has over 128 fields",
                              NULL },
    [PAGE_NOBODY] = { 421, "Misdirected Request", "unknown_host",
                      "Nothing answers under this name: it is neither a port of a sandbox nor a "
                      "name that somebody has",
                      NULL },
    [PAGE_NO_SANDBOX] = { 502, "Bad Gateway", "sandbox_not_found", "The sandbox was not found",
                          "it ended long ago, or never was" },
    [PAGE_GONE] = { 502, "Bad Gateway", "sandbox_gone", "The sandbox was not found",
                    "it has ended" },
    [PAGE_ASLEEP] = { 502, "Bad Gateway", "sandbox_not_running",
                      "The sandbox is stopped; start it and try again", NULL },
    [PAGE_CLOSED] = { 502, "Bad Gateway", "port_closed",
                      "The sandbox is running but port is not open", "nothing listens there" },
    [PAGE_FORBIDDEN] = { 403, "Forbidden", "forbidden",
                         "The sandbox is private: send a key of its team as X-API-Key, a preview "
                         "token as X-Warren-Preview-Token or warren_token in the query, or its "
                         "traffic token as e2b-traffic-access-token",
                         NULL },
    [PAGE_LIMITED] = { 429, "Too Many Requests", "too_many_requests",
                       "Too many wrong tokens came from this address; wait, then send a right one",
                       NULL },
    [PAGE_BROKEN] = { 502, "Bad Gateway", "bad_answer",
                      "The server in the sandbox broke off, or its answer is not HTTP", NULL },
    [PAGE_FAILED] = { 503, "Service Unavailable", "unavailable",
                      "The sandbox could not be reached just now; try again", NULL },
};

/* Why it ended or sleeps, as a sentence; "" for what has no story. */
static const char *story_of(const char *cause)
{
    static const struct {
        const char *cause, *story;
    } table[] = {
        { "deleted", "It was deleted." },
        { "stopped", "It was stopped." },
        { "timeout", "Its time was over." },
        { "idle", "Nobody used it for a while." },
        { "crashed", "It crashed." },
        { "failed", "It could not be started." },
        { "shutdown", "All sandboxes were shut down." },
        { "host_reboot", "Its host was restarted." },
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (strcmp(table[i].cause, cause) == 0)
            return table[i].story;
    return "";
}

static const char *message_of(const struct row *row, char out[MESSAGE_SIZE])
{
    (void)snprintf(out, MESSAGE_SIZE, "%s%s%s", row->message, row->more ? ": " : "",
                   row->more ? row->more : "");
    return out;
}

static int make_json(const struct row *row, const struct page_about *about, struct buf *b)
{
    struct jout j = JOUT_INIT(b);
    const char *story = story_of(about->cause);
    char whole[MESSAGE_SIZE];
    jout_open(&j, NULL, '{');
    jout_str(&j, "sandboxId", about->sandbox);
    if (about->port)
        jout_uint(&j, "port", about->port);
    jout_str(&j, "message", row->message);
    jout_uint(&j, "code", row->status);
    jout_open(&j, "error", '{');
    jout_str(&j, "code", row->code);
    jout_str(&j, "message", message_of(row, whole));
    if (story[0])
        jout_str(&j, "cause", about->cause);
    if (about->ended_ms)
        jout_time(&j, "ended_at", about->ended_ms);
    jout_close(&j, '}');
    jout_close(&j, '}');
    int r = jout_done(&j);
    return r < 0 ? r : buf_puts(b, "\n");
}

static int make_html(const struct row *row, const struct page_about *about, struct buf *b)
{
    char when[CLOCK_TEXT_MAX] = "", whole[MESSAGE_SIZE];
    int r = buf_printf(b,
                       "<!doctype html><meta charset=utf-8><meta name=viewport content="
                       "\"width=device-width\"><title>%u %s</title><style>body{font:16px/1.5 "
                       "system-ui,sans-serif;max-width:36em;margin:15vh auto;padding:0 1em}"
                       "code{font-size:.95em}</style><h1>%s</h1>",
                       row->status, row->reason, message_of(row, whole));
    if (r >= 0 && about->sandbox[0])
        r = buf_printf(b, "<p>Sandbox <code>%s</code>, port %u</p>", about->sandbox, about->port);
    if (r >= 0 && story_of(about->cause)[0])
        r = buf_printf(b, "<p>%s %s</p>", story_of(about->cause),
                       about->ended_ms ? clock_text(about->ended_ms, when) : "");
    return r < 0 ? r : buf_printf(b, "<p><code>%s</code></p>\n", row->code);
}

static const char *retry_of(unsigned status)
{
    return status == 503 ? "Retry-After: 1\r\n" : status == 429 ? "Retry-After: 10\r\n" : "";
}

int page_write(enum page page, const struct page_about *about, struct buf *out)
{
    const struct row *row = &rows[page];
    _cleanup_(buf_done) struct buf body = BUF_INIT(BODY_MAX);
    int r = about->html ? make_html(row, about, &body) : make_json(row, about, &body);
    if (r < 0)
        return r;
    r = buf_printf(out,
                   "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                   "Cache-Control: no-store\r\n%s%s\r\n",
                   row->status, row->reason,
                   about->html ? "text/html; charset=utf-8" : "application/json", body.len,
                   retry_of(row->status), about->keep ? "" : "Connection: close\r\n");
    return r < 0 || about->no_body ? r : buf_append(out, body.data, body.len);
}
