/* header_fuzz - what requests carry besides their body: Accept-Encoding, Origin, times, cursors;
 * and lines of the log, which hold what clients sent. The first byte says which. */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "front/http/cors.h"
#include "front/http/gzip.h"
#include "front/native/paging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_cursor(const char *text)
{
    struct request req = { .fd = -1 };
    struct err err = ERR_INIT;
    struct paging page;
    _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
    if (buf_printf(&b, "/x?cursor=%s", text) >= 0 &&
        uri_parse(b.data, b.len, &req.uri, &err) >= 0) {
        if (paging_read(&req, &page, &err) >= 0 && strlen(page.after) >= PAGING_KEY_MAX)
            __builtin_trap();
        uri_done(&req.uri);
    }
}

static void read_line(const char *text)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);
    struct jout j = JOUT_INIT(&b);
    char quoted[256], line[512], back[256];
    struct log_record rec = { 1, LOG_INFO, "fuzz", text };
    log_put_json(&j, &rec);
    if (jout_done(&j) >= 0) {
        json_t *o = json_loadb(b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
        if (!o)
            __builtin_trap(); /* whatever a line holds, it is one JSON object */
        json_decref(o);
    }
    struct log_field f;
    const char *at = line;
    (void)snprintf(line, sizeof(line), "v=%s", log_quote(quoted, sizeof(quoted), text));
    if (!log_field_next(&at, &f) || *at)
        __builtin_trap(); /* a quoted value is one value */
    (void)log_field_value(&f, back, sizeof(back));
    if (strncmp(text, back, strlen(back)) != 0)
        __builtin_trap(); /* and comes back as it was, cut at most */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2048];
    int64_t ms;
    if (size < 1 || size > sizeof(text))
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 5) {
    case 0: (void)gzip_accepted(text); break;
    case 1: {
        const char *origin = "https://a.example";
        struct err err = ERR_INIT;
        if (cors_check(text, &err) >= 0)
            (void)cors_allows(text, origin);
        break;
    }
    case 2: (void)clock_parse(text, &ms); break;
    case 3: read_cursor(text); break;
    case 4: read_line(text); break;
    }
    return 0;
}
