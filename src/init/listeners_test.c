#include "init/listeners.h"

#include <string.h>

#include "base/check.h"
#include "base/cleanup.h"

static const char v4[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 "
    "0000000000000000 100 0 0 10 0\n"
    "   1: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 "
    "0000000000000000 100 0 0 10 0\n"
    "   2: 0100007F:0BB8 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 "
    "0000000000000000 20 4 30 10 -1\n";

static const char v6[] =
    "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 99 1 0000000000000000 100 0 0 10 0\n";

TEST(listeners_are_those_that_listen)
{
    struct listener l[8];
    CHECK_EQ(listeners_parse(v4, sizeof(v4) - 1, false, l, 8), 2);
    CHECK_EQ(l[0].port, 3000);
    CHECK_EQ(l[0].inode, 4242);
    CHECK(memcmp(l[0].address, "\x7f\0\0\x01", 4) == 0);
    CHECK_EQ(l[1].port, 8080);
    CHECK_EQ(l[1].inode, 77);
    CHECK_EQ(listeners_parse(v6, sizeof(v6) - 1, true, l, 8), 1);
    CHECK_EQ(l[0].port, 80);
    CHECK(l[0].v6 && l[0].address[15] == 1 && l[0].address[0] == 0);
    CHECK_EQ(listeners_parse(v4, sizeof(v4) - 1, false, l, 1), 1);
}

TEST(listeners_of_nonsense_are_none)
{
    struct listener l[8];
    static const char *const bad[] = { "",
                                       "\n\n",
                                       "x",
                                       "   0: zz",
                                       ": ",
                                       "0: 0100007F",
                                       "0: 0100007F:0BB8",
                                       "0: 0100007F:0000 0:0 0A 0:0 0:0 0 0 0 1" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(listeners_parse(bad[i], strlen(bad[i]), false, l, 8), 0);
    CHECK_EQ(listeners_parse(v4, sizeof(v4) - 1, true, l, 8), 0);
}
