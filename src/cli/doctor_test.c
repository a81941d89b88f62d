#include "cli/doctor.h"

#include "base/check.h"

TEST(kernel_releases_compare)
{
    CHECK_EQ(kernel_release("5.15.0-91-generic"), KERNEL(5, 15));
    CHECK_EQ(kernel_release("6.1"), KERNEL(6, 1));
    CHECK(kernel_release("6.1.0-18-amd64") > kernel_release("5.19.17"));
    CHECK_EQ(kernel_release(""), 0);
    CHECK_EQ(kernel_release("nonsense"), 0);
}

TEST(every_check_says_something)
{
    for (size_t i = 0; i < doctor_checks_n; i++) {
        struct finding f = { .mark = FINDING_FAIL };
        doctor_checks[i].look(&f);
        CHECK(f.detail[0]);
        CHECK(f.mark == FINDING_OK || f.fix[0]); /* whatever is missing, how to get it */
    }
}
