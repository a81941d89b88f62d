#include "core/spec.h"

#include <errno.h>

#include "base/check.h"

#define MIB (1024ull * 1024)

static struct sandbox_spec good(void)
{
    struct sandbox_spec s;
    sandbox_spec_init(&s);
    return s;
}

TEST(the_defaults_are_within_the_bounds)
{
    struct sandbox_spec s = good(), full;
    struct err err = ERR_INIT;
    CHECK_OK(spec_check(&s, &err));
    CHECK_OK(spec_complete(&s, &full));
    CHECK_STR(full.image, "base");
    CHECK_STR(full.user, "root");
    CHECK(!full.workdir && !full.name);
    CHECK_OK(spec_check(&full, &err));
    sandbox_spec_done(&full);
}

TEST(a_limit_out_of_its_range_is_refused_by_its_name)
{
    static const struct {
        const char *member;
        uint32_t cpu, pids, nofile;
        uint64_t memory, disk;
        int64_t timeout, idle;
    } cases[] = {
        { .member = "'cpus'", .cpu = 49 },
        { .member = "'cpus'", .cpu = UINT32_MAX },
        { .member = "'memory_mb'", .memory = 16 * MIB - 1 },
        { .member = "'memory_mb'", .memory = UINT64_MAX },
        { .member = "'disk_mb'", .disk = 15 * MIB },
        { .member = "'disk_mb'", .disk = UINT64_MAX },
        { .member = "'pids'", .pids = 3 },
        { .member = "'pids'", .pids = 32769 },
        { .member = "'nofile'", .nofile = UINT32_MAX },
        { .member = "'timeout_s'", .timeout = -1 },
        { .member = "'timeout_s'", .timeout = INT64_MAX },
        { .member = "'idle_timeout_s'", .idle = -5 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sandbox_spec s = good();
        struct err err = ERR_INIT;
        s.cpu_millis = cases[i].cpu ? cases[i].cpu : s.cpu_millis;
        s.memory_bytes = cases[i].memory ? cases[i].memory : s.memory_bytes;
        s.disk_bytes = cases[i].disk ? cases[i].disk : s.disk_bytes;
        s.pids = cases[i].pids ? cases[i].pids : s.pids;
        s.nofile = cases[i].nofile ? cases[i].nofile : s.nofile;
        s.timeout_ms = cases[i].timeout;
        s.idle_timeout_ms = cases[i].idle;
        CHECK_EQ(spec_check(&s, &err), -EINVAL);
        CHECK_STR(failure_name(err.failure), "invalid_field");
        CHECK(strstr(err.msg, cases[i].member) != NULL);
    }
}

TEST(texts_of_a_wrong_shape_are_refused)
{
    static char empty[] = "", slash[] = "a/b", rel[] = "tmp", line[] = "a\nb", upper[] = "Base";
    struct err err = ERR_INIT;
    struct sandbox_spec s = good();
    s.name = slash;
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
    s = good();
    s.workdir = rel;
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
    s = good();
    s.user = empty;
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
    s.user = line;
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
    s = good();
    s.image = upper;
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
}

TEST(the_environment_is_bounded_and_its_names_are_names)
{
    static const char *const bad[] = { "", "1A", "A B", "A=B", "\xc3\xa9" };
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sandbox_spec s = good();
        CHECK_OK(pairs_add(&s.env, bad[i], "x"));
        CHECK_EQ(spec_check(&s, &err), -EINVAL);
        sandbox_spec_done(&s);
        s = good();
        CHECK_OK(pairs_add(&s.metadata, bad[i], "x"));
        CHECK_EQ(spec_check(&s, &err), bad[i][0] ? 0 : -EINVAL);
        sandbox_spec_done(&s);
    }
    struct sandbox_spec s = good();
    for (int i = 0; i < 257; i++) {
        char name[16];
        CHECK(snprintf(name, sizeof(name), "N%d", i) > 0);
        CHECK_EQ(spec_check(&s, &err), 0);
        CHECK_OK(pairs_add(&s.env, name, "x"));
    }
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
    sandbox_spec_done(&s);

    s = good();
    char *large = malloc(64 * 1024 + 2);
    assert_non_null(large);
    memset(large, 'x', 64 * 1024 + 1);
    large[64 * 1024 + 1] = '\0';
    CHECK_OK(pairs_add(&s.env, "A", large));
    CHECK_EQ(spec_check(&s, &err), -EINVAL);
    large[64 * 1024] = '\0';
    CHECK_OK(pairs_add(&s.env, "A", large));
    CHECK_EQ(s.env.n, 1);
    CHECK_EQ(spec_check(&s, &err), 0);
    for (int i = 0; i < 16; i++) {
        char name[16];
        CHECK(snprintf(name, sizeof(name), "N%d", i) > 0);
        CHECK_OK(pairs_add(&s.env, name, large));
    }
    CHECK_EQ(spec_check(&s, &err), -EINVAL); /* each fits, all do not */
    free(large);
    sandbox_spec_done(&s);
}

TEST(a_spec_comes_back_from_its_form_at_rest)
{
    struct sandbox_spec s = good(), t;
    struct err err = ERR_INIT;
    s.image = strdup("repo/name:tag");
    s.user = strdup("1000:1000");
    s.workdir = strdup("/srv \"x\"");
    s.cpu_millis = 1500;
    s.memory_bytes = 3 * MIB * 1024;
    s.timeout_ms = 5000;
    s.on_timeout = END_STOP;
    s.on_idle = END_DELETE;
    CHECK_OK(pairs_add(&s.env, "A", "1\n2"));
    CHECK_OK(pairs_add(&s.env, "B", ""));
    CHECK_OK(pairs_add(&s.metadata, "k\xc3\xa9y", "v"));
    _cleanup_free_ char *text = spec_to_json(&s, false), *record = spec_to_json(&s, true);
    CHECK_OK(spec_from_json(text, &t, &err));
    CHECK_STR(t.image, s.image);
    CHECK_STR(t.user, s.user);
    CHECK_STR(t.workdir, s.workdir);
    CHECK_EQ(t.cpu_millis, 1500);
    CHECK_EQ(t.memory_bytes, s.memory_bytes);
    CHECK_EQ(t.timeout_ms, 5000);
    CHECK_EQ(t.on_timeout, END_STOP);
    CHECK_EQ(t.on_idle, END_DELETE);
    CHECK_STR(pairs_get(&t.env, "A"), "1\n2");
    CHECK_STR(pairs_get(&t.env, "B"), "");
    CHECK_STR(pairs_get(&t.metadata, "k\xc3\xa9y"), "v");
    sandbox_spec_done(&t);
    CHECK_OK(spec_from_json(record, &t, &err));
    CHECK_EQ(t.env.n, 0); /* a record keeps no secret */
    CHECK_EQ(t.metadata.n, 1);
    sandbox_spec_done(&t);
    sandbox_spec_done(&s);
    CHECK_EQ(spec_from_json("[1]", &t, &err), -EPROTO);
    CHECK_EQ(spec_from_json("{\"env\":{\"A\":1}}", &t, &err), -EPROTO);
    CHECK_EQ(spec_from_json("", &t, &err), -EPROTO);
}

TEST(marks_of_earlier_versions_are_notes)
{
    static const char text[] = "{\"metadata\":{\"warren.e2b.open\":\"1\",\"mine\":\"2\"},"
                               "\"notes\":{\"preview.host\":\"localhost\"}}";
    struct sandbox_spec s, back;
    CHECK_OK(spec_from_json(text, &s, NULL));
    CHECK_EQ(s.metadata.n, 1);
    CHECK_STR(pairs_get(&s.metadata, "mine"), "2");
    CHECK_EQ(s.notes.n, 2);
    _cleanup_free_ char *again = spec_to_json(&s, false);
    CHECK_OK(spec_from_json(again, &back, NULL));
    CHECK_EQ(back.metadata.n, 1);
    CHECK_STR(pairs_get(&back.notes, "e2b.open"), "1");
    CHECK_STR(pairs_get(&back.notes, "preview.host"), "localhost");
    sandbox_spec_done(&back);
    sandbox_spec_done(&s);
}

TEST(pairs_replace_a_same_name_and_copy_deep)
{
    struct pairs p = { NULL, NULL, 0 }, q;
    CHECK_OK(pairs_add(&p, "a", "1"));
    CHECK_OK(pairs_add(&p, "b", "2"));
    CHECK_OK(pairs_add(&p, "a", "3"));
    CHECK_EQ(p.n, 2);
    CHECK_STR(pairs_get(&p, "a"), "3");
    CHECK(pairs_get(&p, "c") == NULL);
    CHECK_OK(pairs_copy(&p, &q));
    pairs_done(&p);
    CHECK_STR(pairs_get(&q, "b"), "2");
    pairs_done(&q);
}
