#include "broker/unresolved.h"

#include <stdio.h>

#include "base/check.h"

TEST(a_name_is_known_for_a_while_and_the_oldest_gives_way)
{
    static struct unresolveds us;
    char name[16];
    struct unresolved *u = unresolved_find(&us, "a.test", 1000);
    CHECK(!u->told && !u->families);
    u->told = true;
    CHECK(unresolved_find(&us, "a.test", 1000 + UNRESOLVED_MS - 1)->told);
    CHECK(!unresolved_find(&us, "a.test", 1000 + UNRESOLVED_MS)->told);
    unresolved_find(&us, "a.test", 1000 + UNRESOLVED_MS)->told = true;
    for (int i = 0; i < UNRESOLVED_MAX; i++) {
        (void)snprintf(name, sizeof(name), "%d.test", i);
        CHECK(!unresolved_find(&us, name, 2000 + UNRESOLVED_MS + i)->told);
    }
    CHECK(!unresolved_find(&us, "a.test", 3000 + UNRESOLVED_MS)->told);
}
