#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

static struct CMUnitTest tests[CHECK_TESTS_MAX];
static size_t count;

void check_register(const char *name, CMUnitTestFunction fn)
{
    if (count == CHECK_TESTS_MAX) {
        (void)fprintf(stderr, "too many tests in one program; raise CHECK_TESTS_MAX\n");
        abort();
    }
    tests[count++] = (struct CMUnitTest){ .name = name, .test_func = fn };
}

void check_skip(const char *why)
{
    const char *must = getenv("MUST_RUN");
    if (must && strcmp(must, "1") == 0)
        fail_msg("skipped where MUST_RUN=1: %s", why);
    skip();
}

int main(void)
{
    return _cmocka_run_group_tests("unit", tests, count, NULL, NULL);
}
