#include "base/share.h"

#include "base/check.h"

TEST(one_alone_gets_its_most)
{
    CHECK_EQ(share(16384, 0, 2048), 2048);
    CHECK_EQ(share(1000, 0, 2048), 250);
    CHECK_EQ(share(1000, 1000, 2048), 0);
    CHECK_EQ(share(1000, 5000, 2048), 0);
}

/* Many that take whatever they get, in turn: some is left for one who comes then. */
TEST(the_greedy_leave_something)
{
    static const size_t crowds[] = { 1, 2, 8, 16, 64, 200 };
    for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++) {
        size_t held[200] = { 0 }, used = 0;
        for (int round = 0; round < 4096; round++)
            for (size_t k = 0; k < crowds[i]; k++)
                if (held[k] < share(4096, used, 2048)) {
                    held[k]++;
                    used++;
                }
        CHECK(used < 4096);
        CHECK(share(4096, used, 2048) + 1 >= held[0]);
    }
}
