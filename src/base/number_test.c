#include "base/number.h"

#include <errno.h>

#include "base/check.h"
#include "base/cleanup.h"

TEST(whole_numbers_up_to_the_limit)
{
    uint32_t v = 0;
    CHECK_OK(number_u32("0", 9, &v));
    CHECK_EQ(v, 0);
    CHECK_OK(number_u32("4294967295", UINT32_MAX, &v));
    CHECK_EQ(v, UINT32_MAX);
    CHECK_EQ(number_u32("10", 9, &v), -EINVAL);
    CHECK_EQ(v, UINT32_MAX); /* left as it was */
}

TEST(what_is_no_number)
{
    static const char *const words[] = { "", " 1", "+1", "-1", "1x", "x", "99999999999999999999" };
    uint32_t v = 0;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        CHECK_EQ(number_u32(words[i], UINT32_MAX, &v), -EINVAL);
}
