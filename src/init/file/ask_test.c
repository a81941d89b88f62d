#include "init/file/ask.h"

#include <errno.h>
#include <limits.h>

#include "base/check.h"

static int decode(struct buf *b, struct ask *ask, struct err *err)
{
    CHECK_OK(buf_reserve(b, 1));
    return ask_decode(b->data, b->len, ask, err);
}

TEST(a_request_is_decoded_whole)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
    _cleanup_(ask_done) struct ask ask = { 0 };
    struct err err = ERR_INIT;
    CHECK_OK(wire_put_str(&b, WIRE_T_PATH, "/a"));
    CHECK_OK(wire_put_str(&b, WIRE_T_PATTERN, "*.c"));
    CHECK_OK(wire_put_u64(&b, WIRE_T_OP, WIRE_FILE_SEARCH));
    CHECK_OK(wire_put_str(&b, WIRE_T_PATH, "b"));
    CHECK_OK(wire_put_u64(&b, WIRE_T_LIMIT, 0));
    CHECK_OK(wire_put_u64(&b, WIRE_T_FLAGS, WIRE_F_REGEX));
    CHECK_OK(wire_put_str(&b, WIRE_T_TEXT, "x+"));
    CHECK_OK(decode(&b, &ask, &err));
    CHECK_EQ(ask.n_paths, 2);
    CHECK_STR(ask.paths[0], "/a");
    CHECK_STR(ask.paths[1], "b");
    CHECK_EQ(ask.n_patterns, 1);
    CHECK_STR(ask.patterns[0], "*.c");
    CHECK_STR(ask.text, "x+");
    CHECK_STR(ask.user, "");
    CHECK(ask_has(&ask, WIRE_T_LIMIT));
    CHECK(!ask_has(&ask, WIRE_T_DEPTH));
    CHECK(ask_is(&ask, WIRE_F_REGEX));
}

TEST(bad_requests_are_named)
{
    static const struct {
        enum wire_file_op op;
        enum wire_tag tag;
        const char *text; /* NULL: the number */
        size_t n;
        uint64_t number;
        int r;
        const char *what;
    } cases[] = {
        { 0, WIRE_T_USER, "root", 4, 0, -EINVAL, "invalid_field" },
        { 99, WIRE_T_USER, "root", 4, 0, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_PATH, "", 0, 0, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_PATH, "a\0b", 3, 0, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_PATH, "second", 6, 0, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_MODE, NULL, 0, 0644, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_OFFSET, NULL, 0, UINT64_MAX, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_FLAGS, NULL, 0, WIRE_F_RECURSIVE, -EINVAL, "invalid_field" },
        { WIRE_FILE_READ, WIRE_T_OFFSET, "123", 3, 0, -EPROTO, NULL },
        { WIRE_FILE_READ, WIRE_T_ARGV, "x", 1, 0, -EINVAL, "invalid_field" },
        { WIRE_FILE_CHMOD, WIRE_T_USER, "root", 4, 0, -EINVAL, "missing_field" },
        { WIRE_FILE_CHMOD, WIRE_T_MODE, NULL, 0, 010000, -EINVAL, "invalid_field" },
        { WIRE_FILE_MOVE, WIRE_T_USER, "root", 4, 0, -EINVAL, "missing_field" },
        { WIRE_FILE_REPLACE, WIRE_T_TEXT, "a", 1, 0, -EINVAL, "missing_field" },
        { WIRE_FILE_XATTR_SET, WIRE_T_XATTR, "noend", 5, 0, -EINVAL, "invalid_field" },
        { WIRE_FILE_XATTR_SET, WIRE_T_XATTR, "\0v", 2, 0, -EINVAL, "invalid_field" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);
        _cleanup_(ask_done) struct ask ask = { 0 };
        struct err err = ERR_INIT;
        if (cases[i].op)
            CHECK_OK(wire_put_u64(&b, WIRE_T_OP, cases[i].op));
        CHECK_OK(wire_put_str(&b, WIRE_T_PATH, "/a"));
        if (cases[i].text)
            CHECK_OK(wire_put(&b, cases[i].tag, cases[i].text, cases[i].n));
        else
            CHECK_OK(wire_put_u64(&b, cases[i].tag, cases[i].number));
        CHECK_EQ(decode(&b, &ask, &err), cases[i].r);
        if (cases[i].what)
            CHECK_STR(failure_name(err.failure), cases[i].what);
    }
}

TEST(a_path_that_is_too_long_is_called_so)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(16384);
    struct ask ask;
    struct err err = ERR_INIT;
    char path[PATH_MAX + 1];
    memset(path, 'a', sizeof(path));
    CHECK_OK(wire_put_u64(&b, WIRE_T_OP, WIRE_FILE_STAT));
    CHECK_OK(wire_put(&b, WIRE_T_PATH, path, PATH_MAX));
    CHECK_EQ(decode(&b, &ask, &err), -ENAMETOOLONG);
    CHECK_STR(failure_name(err.failure), "name_too_long");
}
