#include "cli/policy.h"

#include <errno.h>

#include "base/check.h"
#include "base/cleanup.h"

static char *body_of(const char *text, int *ret_r)
{
    json_t *body = json_object();
    *ret_r = policy_put(body, text, NULL);
    char *s = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(body);
    return s;
}

TEST(a_policy_becomes_what_the_api_takes)
{
    int r;
    char *s = body_of("every=10m,command,stop,last=3,for=2d,hourly=24,daily=7", &r);
    CHECK_OK(r);
    CHECK_STR(
        s, "{\"checkpoints\":{\"before_each_command\":true,\"every_s\":600.0,\"keep\":{\"daily\":"
           "7,\"for_s\":172800.0,\"hourly\":24,\"last\":3},\"on_stop\":true}}");
    free(s);
    s = body_of("none", &r);
    CHECK_STR(s, "{\"checkpoints\":null}");
    free(s);
    s = body_of("stop", &r);
    CHECK_STR(s, "{\"checkpoints\":{\"on_stop\":true}}");
    free(s);
}

TEST(what_is_not_understood_is_refused)
{
    static const char *const wrong[] = { "sometimes", "every=", "every=-1s",
                                         "last=0",    "last=x", "command=yes" };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        int r;
        free(body_of(wrong[i], &r));
        CHECK_EQ(r, -EINVAL);
    }
}
