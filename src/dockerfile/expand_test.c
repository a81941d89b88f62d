#include "dockerfile/expand.h"

#include <errno.h>

#include "base/check.h"
#include "base/cleanup.h"

static const char *lookup(void *ctx, const char *name)
{
    static const struct {
        const char *name, *value;
    } vars[] = { { "x", "one" },           { "two", "1  2" },   { "empty", "" },
                 { "file", "a/b.tar.gz" }, { "star", "a*b*c" }, { "USER", "me" } };
    for (size_t i = 0; i < ARRAY_LEN(vars); i++)
        if (strcmp(vars[i].name, name) == 0)
            return vars[i].value;
    return NULL;
}

struct row {
    const char *word, *want;
};

static void check_rows(const struct row *rows, size_t n, const struct expand *x)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_(buf_done) struct buf out = BUF_INIT(1024);
        struct err err = ERR_INIT;
        int r = expand_word(x, rows[i].word, &out, &err);
        if (!rows[i].want) {
            if (r != -EINVAL)
                fail_msg("'%s' was taken: '%s'", rows[i].word, out.data);
            continue;
        }
        if (r < 0 || strcmp(out.data, rows[i].want) != 0)
            fail_msg("'%s' became '%s' (%s), not '%s'", rows[i].word, out.data, err.msg,
                     rows[i].want);
    }
}

TEST(words_are_expanded_as_docker_has_it)
{
    static const struct row rows[] = {
        { "", "" },
        { "plain", "plain" },
        { "$x", "one" },
        { "a$x-b", "aone-b" },
        { "${x}y", "oney" },
        { "$xy", "" },
        { "$nothing", "" },
        { "$", "$" },
        { "a$/b", "a$/b" },
        { "a$", "a$" },
        { "$1", "" },
        { "$12a", "a" },
        { "$two", "1  2" },
        { "'$x'", "$x" },
        { "\"$x\"", "one" },
        { "\"a'$x'b\"", "a'one'b" },
        { "'a\"b'", "a\"b" },
        { "\\$x", "$x" },
        { "\"\\$x\"", "$x" },
        { "\"a\\b\"", "a\\b" },
        { "\"a\\\\b\"", "a\\b" },
        { "\"\\\"\"", "\"" },
        { "a\\ b", "a b" },
        { "a\\", "a" },
        { "'a\\'", "a\\" },
        { "\\'", "'" },
        { "${x:-d}", "one" },
        { "${nothing:-d}", "d" },
        { "${empty:-d}", "d" },
        { "${empty-d}", "" },
        { "${nothing-d}", "d" },
        { "${x:+d}", "d" },
        { "${nothing:+d}", "" },
        { "${empty:+d}", "" },
        { "${empty+d}", "d" },
        { "${nothing:-$x}", "one" },
        { "${nothing:-${empty:-${x}}}", "one" },
        { "${nothing:-\"a b\"}", "a b" },
        { "${nothing:-'}'}", "}" },
        { "${nothing:-\\}}", "}" },
        { "${nothing:-}", "" },
        { "${x:?must}", "one" },
        { "${nothing:?must}", NULL },
        { "${empty:?must}", NULL },
        { "${empty?must}", "" },
        { "${x", NULL },
        { "${", NULL },
        { "${}", NULL },
        { "${:-a}", NULL },
        { "${x:-a", NULL },
        { "${x/a/b}", NULL },
        { "${x:1:2}", NULL },
        { "${x!}", NULL },
        { "'a", NULL },
        { "\"a", NULL },
        { "${file#*/}", "b.tar.gz" },
        { "${file%.*}", "a/b.tar" },
        { "${file%%.*}", "a/b" },
        { "${file##*.}", "gz" },
        { "${file#x}", "a/b.tar.gz" },
        { "${file%.g?}", "a/b.tar" },
        { "${star#a\\*}", "b*c" },
        { "${star%\\*c}", "a*b" },
        { "${nothing#a}", "" },
        { "\xc3\xa4$x\xc3\xb6", "\xc3\xa4one\xc3\xb6" },
    };
    struct expand x = { .escape = '\\', .lookup = lookup };
    check_rows(rows, ARRAY_LEN(rows), &x);
}

TEST(another_escape_leaves_backslashes_alone)
{
    static const struct row rows[] = {
        { "c:\\$x", "c:\\one" },
        { "`$x", "$x" },
        { "\"`\"\"", "\"" },
    };
    struct expand x = { .escape = '`', .lookup = lookup };
    check_rows(rows, ARRAY_LEN(rows), &x);
}

TEST(a_heredoc_keeps_its_quotes)
{
    static const struct row rows[] = {
        { "a '$x' \"${x}\"\n", "a 'one' \"one\"\n" },
        { "\\$x \\\\ \\n it's\n", "$x \\ \\n it's\n" },
    };
    struct expand x = { .escape = '\\', .keep_quotes = true, .lookup = lookup };
    check_rows(rows, ARRAY_LEN(rows), &x);
}

TEST(a_list_is_cut_where_a_value_has_spaces)
{
    struct expand x = { .escape = '\\', .lookup = lookup };
    _cleanup_(buf_done) struct buf out = BUF_INIT(1024);
    CHECK_OK(expand_list(&x, "$two", &out, NULL));
    CHECK_EQ(out.len, 3);
    CHECK_MEM(out.data, "1\0002", 3);
    CHECK_OK(expand_list(&x, "\"$two\"", &out, NULL));
    CHECK_STR(out.data, "1  2");
}

TEST(expansion_is_bounded)
{
    struct expand x = { .escape = '\\', .lookup = lookup };
    _cleanup_(buf_done) struct buf out = BUF_INIT(5), deep = BUF_INIT(4096);
    CHECK_EQ(expand_word(&x, "$x$x", &out, NULL), -EMSGSIZE);
    for (int i = 0; i < 200; i++)
        CHECK_OK(buf_puts(&deep, "${n:-"));
    CHECK_EQ(expand_word(&x, deep.data, &out, NULL), -EINVAL);
}
