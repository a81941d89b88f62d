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

int main(void)
{
    return _cmocka_run_group_tests("unit", tests, count, NULL, NULL);
}
