#include "cli/listing.h"

#include "cli/sanitise.h"
#include "cli/xmem.h"

#define GAP 2       /* blanks between columns */
#define LEAST_CUT 8 /* a last column narrower than this is not worth cutting to */

void listing_init(struct listing *t, const struct column *columns, size_t ncolumns)
{
    *t = (struct listing){ .columns = columns, .ncolumns = ncolumns };
}

void listing_done(struct listing *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->n = t->cap = 0;
}

void listing_text(struct listing *t, const char *text)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = xrealloc(t->cells, t->cap, sizeof(*t->cells));
    }
    t->cells[t->n++] = text_line(text && *text ? text : "-");
}

void listing_int(struct listing *t, int64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)n);
    listing_text(t, text);
}

static void pad(FILE *out, size_t n)
{
    (void)fprintf(out, "%*s", (int)n, "");
}

/* Print at most max columns (0: all) of text, without cutting a character in two. */
static void print_cut(FILE *out, const char *text, size_t max)
{
    size_t width = text_width(text);
    if (max == 0 || width <= max) {
        (void)fputs(text, out);
        return;
    }
    size_t n = 0;
    const char *p = text;
    for (; *p; p++)
        if (((unsigned char)*p & 0xc0) != 0x80 && n++ == max - 3)
            break;
    (void)fprintf(out, "%.*s...", (int)(p - text), text);
}

static void print_row(const struct listing *t, FILE *out, char *const *cells, const size_t *widths,
                      size_t width)
{
    size_t at = 0;
    for (size_t c = 0; c < t->ncolumns; c++) {
        const char *text = cells ? cells[c] : t->columns[c].title;
        bool last = c + 1 == t->ncolumns;
        size_t blank = widths[c] - text_width(text);
        if (t->columns[c].right)
            pad(out, blank);
        size_t room = width > at ? width - at : 0;
        print_cut(out, text, last && room >= LEAST_CUT ? room : 0);
        if (!t->columns[c].right && !last)
            pad(out, blank);
        if (!last)
            pad(out, GAP);
        at += widths[c] + GAP;
    }
    (void)fputc('\n', out);
}

void listing_print(const struct listing *t, FILE *out, size_t width)
{
    _cleanup_free_ size_t *widths = xcalloc(t->ncolumns, sizeof(*widths));
    for (size_t c = 0; c < t->ncolumns; c++)
        widths[c] = text_width(t->columns[c].title);
    for (size_t i = 0; i < t->n; i++) {
        size_t w = text_width(t->cells[i]);
        if (w > widths[i % t->ncolumns])
            widths[i % t->ncolumns] = w;
    }
    print_row(t, out, NULL, widths, width);
    for (size_t i = 0; i + t->ncolumns <= t->n; i += t->ncolumns)
        print_row(t, out, t->cells + i, widths, width);
}
