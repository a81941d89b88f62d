#include "cli/listing.h"

#include "cli/colour.h"
#include "cli/sanitise.h"
#include "cli/xmem.h"

#define GAP 2       /* blanks between columns */
#define CUT_LEAST 8 /* a column that is narrower than this is not worth cutting */

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

/* Print at most max columns of text, without cutting a character in two. */
static void print_cut(FILE *out, const char *text, size_t max)
{
    size_t width = text_width(text);
    if (width <= max) {
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

static void print_row(const struct listing *t, FILE *out, char *const *cells, const size_t *widths)
{
    for (size_t c = 0; c < t->ncolumns; c++) {
        const char *text = cells ? cells[c] : t->columns[c].title;
        enum colour colour = !cells                               ? COLOUR_BOLD
                             : t->columns[c].kind == COLUMN_STATE ? colour_of_state(text)
                                                                  : COLOUR_NONE;
        bool last = c + 1 == t->ncolumns;
        size_t width = text_width(text), blank = widths[c] > width ? widths[c] - width : 0;
        if (t->columns[c].kind == COLUMN_NUMBER)
            pad(out, blank);
        (void)fputs(colour_on(out, colour), out);
        print_cut(out, text, widths[c]);
        (void)fputs(colour_off(out, colour), out);
        if (t->columns[c].kind != COLUMN_NUMBER && !last)
            pad(out, blank);
        if (!last)
            pad(out, GAP);
    }
    (void)fputc('\n', out);
}

/* How far a column may be cut; its own width where it stays whole. */
static size_t least(const struct listing *t, size_t c, size_t width)
{
    size_t title = text_width(t->columns[c].title);
    size_t floor = title > CUT_LEAST ? title : CUT_LEAST;
    bool whole = c == 0 || t->columns[c].kind != COLUMN_TEXT;
    return whole || width < floor ? width : floor;
}

/* Take from the widest until the row fits, or nothing can give any more. */
static void fit(const struct listing *t, size_t *widths, size_t width)
{
    size_t total = GAP * (t->ncolumns - 1);
    for (size_t c = 0; c < t->ncolumns; c++) {
        size_t floor = least(t, c, widths[c]);
        if (widths[c] > width && floor < width)
            widths[c] = width;
        total += widths[c];
    }
    while (total > width) {
        size_t widest = t->ncolumns;
        for (size_t c = 0; c < t->ncolumns; c++)
            if (widths[c] > least(t, c, widths[c]) &&
                (widest == t->ncolumns || widths[c] > widths[widest]))
                widest = c;
        if (widest == t->ncolumns)
            return;
        widths[widest]--;
        total--;
    }
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
    if (width > 0)
        fit(t, widths, width);
    print_row(t, out, NULL, widths);
    for (size_t i = 0; i + t->ncolumns <= t->n; i += t->ncolumns)
        print_row(t, out, t->cells + i, widths);
}
