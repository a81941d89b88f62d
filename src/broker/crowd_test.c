#include "broker/crowd.h"

#include "base/check.h"

#define FLOODER "a0000000000000000000"
#define NEIGHBOUR "b0000000000000000000"

static unsigned fill(struct crowd *c, const char *sandbox)
{
    unsigned n = 0;
    while (crowd_enter(c, sandbox))
        n++;
    return n;
}

TEST(one_sandbox_leaves_room_for_others)
{
    static struct crowd c;
    crowd_init(&c, 1000);
    CHECK_EQ(fill(&c, FLOODER), 500);
    CHECK_EQ(fill(&c, FLOODER), 0);
    CHECK_EQ(fill(&c, NEIGHBOUR), 250);
    CHECK(crowd_enter(&c, "c0000000000000000000") > 0);
}

TEST(who_leaves_makes_room)
{
    static struct crowd c;
    crowd_init(&c, 4);
    unsigned ticket = crowd_enter(&c, FLOODER);
    CHECK(ticket > 0 && crowd_enter(&c, FLOODER) > 0);
    CHECK_EQ(crowd_enter(&c, FLOODER), 0);
    crowd_leave(&c, ticket);
    crowd_leave(&c, 0);
    CHECK_EQ(c.n, 1);
    CHECK(crowd_enter(&c, FLOODER) > 0);
}
