#include "init/ps.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/check.h"
#include "base/cleanup.h"

#define TAIL " 0 -1 4194304 100 200 0 0 150 50 10 5 20 0 1 0 12345 1000000 256 1844674407 1 2 3"

TEST(a_stat_line_is_read_whatever_the_name_holds)
{
    static const struct {
        const char *line;
        int r;
        pid_t pid, ppid;
        const char *comm;
    } cases[] = {
        { "42 (sh) S 7 42 42" TAIL, 0, 42, 7, "sh" },
        { "42 (a) R 9 (b)) S 7 42 42" TAIL, 0, 42, 7, "a) R 9 (b)" },
        { "42 () Z 7 42 42" TAIL, 0, 42, 7, "" },
        { "42 (sh) S 7", -EPROTO, 0, 0, NULL },
        { "42 (sh)", -EPROTO, 0, 0, NULL },
        { "42 sh S 7 42", -EPROTO, 0, 0, NULL },
        { ")(", -EPROTO, 0, 0, NULL },
        { "", -EPROTO, 0, 0, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ps_stat s;
        CHECK_EQ(ps_parse_stat(cases[i].line, strlen(cases[i].line), &s), cases[i].r);
        if (cases[i].r < 0)
            continue;
        CHECK_EQ(s.pid, cases[i].pid);
        CHECK_EQ(s.ppid, cases[i].ppid);
        CHECK_EQ(s.pgrp, 42);
        CHECK_STR(s.comm, cases[i].comm);
        CHECK_EQ(s.cpu_us, 215u * 1000000 / (unsigned)sysconf(_SC_CLK_TCK));
        CHECK_EQ(s.rss_bytes, 256u * (unsigned)sysconf(_SC_PAGESIZE));
    }
}

TEST(our_parent_is_among_the_processes_and_we_are_not)
{
    CHECK_OK(ps_open());
    _cleanup_free_ pid_t *pids = NULL;
    size_t n = 0;
    CHECK_OK(ps_all(&pids, &n));
    bool parent = false;
    for (size_t i = 0; i < n; i++) {
        parent |= pids[i] == getppid();
        CHECK(pids[i] != getpid());
    }
    CHECK(parent);
    struct ps_stat s;
    CHECK_OK(ps_read(getppid(), &s));
    CHECK(s.rss_bytes > 0);
    char args[PS_ARGS_BYTES_MAX];
    CHECK(ps_args(getppid(), args, sizeof(args)) > 0);
}
