#include "base/criu.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static int parse(struct criu *c, const char *text, struct err *err)
{
    (void)snprintf(c->text, sizeof(c->text), "%s", text);
    return criu_parse(c, err);
}

TEST(a_record_says_what_to_run)
{
    struct criu c;
    struct err err = ERR_INIT;
    CHECK_OK(parse(&c, "version 4.1.1\nfrom here\nrun /bin/sh\nrun --opt\nrun /bin/cat\n", &err));
    CHECK_STR(c.version, "4.1.1");
    CHECK_STR(c.from, "here");
    CHECK_STR(c.argv[0], "/bin/sh");
    CHECK_STR(c.argv[2], "/bin/cat");
    CHECK(!c.argv[3]);
}

TEST(a_record_of_none_says_why)
{
    struct criu c;
    struct err err = ERR_INIT;
    CHECK_EQ(parse(&c, "why the kernel is odd\n", &err), -ENOENT);
    CHECK(strstr(err.msg, "the kernel is odd"));
}

TEST(records_that_name_nothing_to_run_are_refused)
{
    static const char *const bad[] = { "", "version 1\n", "run criu\n", "run /nowhere/criu\n",
                                       "run /bin/sh\nrun /nowhere/criu\n" };
    struct criu c;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(parse(&c, bad[i], NULL), -ENOENT);
    CHECK_EQ(parse(&c, "run /a\nrun b\nrun c\nrun d\nrun e\nrun f\nrun g\nrun h\nrun i\n", NULL),
             -E2BIG);
}
