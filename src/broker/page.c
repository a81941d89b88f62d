#include "broker/page.h"

#include <stdio.h>

#define BODY_SIZE 1024

struct row {
    unsigned status;
    const char *reason, *code, *message;
};

static const struct row rows[] = {
    [PAGE_BAD_REQUEST] = { 400, "Bad Request", "invalid_request",
                           "This is not an HTTP/1.1 request that can be passed on safely" },
    [PAGE_HEAD_TOO_LARGE] = { 431, "Request Header Fields Too Large", "head_too_large",
                              "The head of the request is over 32 KiB or has over 128 fields" },
    [PAGE_NO_SANDBOX] = { 502, "Bad Gateway", "sandbox_not_found",
                          "The sandbox was not found: it has ended, or never was" },
    [PAGE_ASLEEP] = { 502, "Bad Gateway", "sandbox_not_running",
                      "The sandbox is stopped; start it and try again" },
    [PAGE_CLOSED] = { 502, "Bad Gateway", "port_closed",
                      "The sandbox is running but port is not open: nothing listens there" },
    [PAGE_FORBIDDEN] = { 403, "Forbidden", "forbidden",
                         "The sandbox is private: send its token as e2b-traffic-access-token" },
    [PAGE_BROKEN] = { 502, "Bad Gateway", "bad_answer",
                      "The server in the sandbox broke off, or its answer is not HTTP" },
    [PAGE_FAILED] = { 503, "Service Unavailable", "unavailable",
                      "The sandbox could not be reached just now; try again" },
};

static int make_json(const struct row *row, const struct page_about *about, char *out, size_t size)
{
    char port[32] = "";
    if (about->port)
        (void)snprintf(port, sizeof(port), "\"port\":%u,", about->port);
    return snprintf(out, size,
                    "{\"sandboxId\":\"%s\",%s\"message\":\"%s\",\"code\":%u,"
                    "\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}\n",
                    about->sandbox, port, row->message, row->status, row->code, row->message);
}

static int make_html(const struct row *row, const struct page_about *about, char *out, size_t size)
{
    char where[64] = "";
    if (about->sandbox[0])
        (void)snprintf(where, sizeof(where), "<p>Sandbox <code>%s</code>, port %u</p>",
                       about->sandbox, about->port);
    return snprintf(out, size,
                    "<!doctype html><meta charset=utf-8><meta name=viewport content="
                    "\"width=device-width\"><title>%u %s</title><style>body{font:16px/1.5 "
                    "system-ui,sans-serif;max-width:36em;margin:15vh auto;padding:0 1em}"
                    "code{font-size:.95em}</style><h1>%s</h1>%s<p><code>%s</code></p>\n",
                    row->status, row->reason, row->message, where, row->code);
}

int page_write(enum page page, const struct page_about *about, struct buf *out)
{
    const struct row *row = &rows[page];
    char body[BODY_SIZE];
    int n = about->html ? make_html(row, about, body, sizeof(body))
                        : make_json(row, about, body, sizeof(body));
    if (n < 0 || (size_t)n >= sizeof(body))
        n = 0;
    int r = buf_printf(
        out,
        "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"
        "Cache-Control: no-store\r\n%s%s\r\n",
        row->status, row->reason, about->html ? "text/html; charset=utf-8" : "application/json", n,
        row->status == 503 ? "Retry-After: 1\r\n" : "", about->keep ? "" : "Connection: close\r\n");
    return r < 0 || about->no_body ? r : buf_append(out, body, (size_t)n);
}
