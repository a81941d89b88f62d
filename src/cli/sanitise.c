#include "cli/sanitise.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "cli/xmem.h"

#define ESC '\x1b'

static bool is_plain(unsigned char c)
{
    return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\t';
}

/* How many bytes a UTF-8 sequence with this first byte has; 0 for what cannot begin one. */
static size_t utf8_length(unsigned char c)
{
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef)
        return 3;
    if (c >= 0xf0 && c <= 0xf4)
        return 4;
    return 0;
}

static uint32_t utf8_decode(const char *p, size_t n)
{
    static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint32_t v = (unsigned char)p[0] & mask[n];
    for (size_t i = 1; i < n; i++)
        v = v << 6 | ((unsigned char)p[i] & 0x3f);
    if (v < least[n] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return 0;
    return v;
}

/* C1 controls act like escape sequences; the others reorder or hide what is around them. */
static bool is_unsafe(uint32_t v)
{
    return (v >= 0x80 && v <= 0x9f) || v == 0x061c || (v >= 0x200e && v <= 0x200f) ||
           (v >= 0x2028 && v <= 0x202e) || (v >= 0x2066 && v <= 0x2069) || v == 0xfeff ||
           (v >= 0xe0000 && v <= 0xe007f);
}

static int put_byte(struct buf *out, unsigned char c)
{
    if (is_plain(c))
        return buf_append(out, &c, 1);
    if (c < 0x20 || c == 0x7f)
        return buf_printf(out, "^%c", c ^ 0x40);
    return buf_printf(out, "\\x%02x", c);
}

static int put_bytes(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int r = put_byte(out, (unsigned char)p[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static int release(struct sanitiser *s, struct buf *out)
{
    size_t n = s->n;
    s->n = 0;
    return put_bytes(out, s->held, n);
}

/* 1: c was taken; 0: what was held is out, c begins anew. */
static int step_escape(struct sanitiser *s, unsigned char c, struct buf *out)
{
    int r;
    bool param = (c >= '0' && c <= '9') || c == ';' || c == ':';
    if (s->n == 1 ? c == '[' : param && s->n < sizeof(s->held) - 1) {
        s->held[s->n++] = (char)c;
        return 1;
    }
    if (s->n > 1 && c == 'm') {
        s->held[s->n++] = 'm';
        s->coloured = s->n > 3 && memcmp(s->held, "\x1b[0m", 4) != 0;
        r = buf_append(out, s->held, s->n);
        s->n = 0;
        return r < 0 ? r : 1;
    }
    r = release(s, out);
    return r < 0 ? r : 0;
}

static int step_utf8(struct sanitiser *s, unsigned char c, struct buf *out)
{
    int r;
    size_t want = utf8_length((unsigned char)s->held[0]);
    if ((c & 0xc0) != 0x80) {
        r = release(s, out);
        return r < 0 ? r : 0;
    }
    s->held[s->n++] = (char)c;
    if (s->n < want)
        return 1;
    uint32_t v = utf8_decode(s->held, want);
    if (v == 0)
        r = release(s, out);
    else if (is_unsafe(v))
        r = buf_printf(out, "\\u%04x", v);
    else
        r = buf_append(out, s->held, want);
    s->n = 0;
    return r < 0 ? r : 1;
}

static int step_held(struct sanitiser *s, unsigned char c, struct buf *out)
{
    if (s->held[0] == ESC)
        return step_escape(s, c, out);
    if (s->held[0] != '\r')
        return step_utf8(s, c, out);
    /* A return alone overwrites the line; before a newline it is only another system's habit. */
    if (c == '\n') {
        s->n = 0;
        return 0;
    }
    int r = release(s, out);
    return r < 0 ? r : 0;
}

int sanitise(struct sanitiser *s, const char *p, size_t n, struct buf *out)
{
    int r;
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)p[i];
        if (s->n > 0) {
            r = step_held(s, c, out);
            if (r < 0)
                return r;
            i += (size_t)r;
            continue;
        }
        size_t run = i;
        while (run < n && is_plain((unsigned char)p[run]))
            run++;
        if (run > i) {
            r = buf_append(out, p + i, run - i);
            i = run;
        } else if (c == ESC || c == '\r' || utf8_length(c) > 0) {
            s->held[s->n++] = (char)c;
            i++;
            continue;
        } else {
            r = put_byte(out, c);
            i++;
        }
        if (r < 0)
            return r;
    }
    return 0;
}

int sanitise_end(struct sanitiser *s, struct buf *out)
{
    int r = release(s, out);
    if (r < 0 || !s->coloured)
        return r;
    s->coloured = false;
    return buf_puts(out, "\x1b[0m");
}

char *text_line(const char *text)
{
    struct sanitiser s = { .n = 0 };
    struct buf out = BUF_INIT(64u << 20);
    if (!text)
        text = "";
    for (const char *p = text; *p; p++) {
        if (*p == '\n')
            xputs(&out, "\\n");
        else if (*p == '\t')
            xputs(&out, "\\t");
        else if (*p == '\r')
            xputs(&out, "\\r");
        else if (*p == ESC)
            xputs(&out, "^[");
        else if (sanitise(&s, p, 1, &out) < 0)
            break;
    }
    (void)sanitise_end(&s, &out);
    char *r = buf_steal(&out);
    return r ? r : xstrdup("");
}

size_t text_width(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}
