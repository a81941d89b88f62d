#include "base/log.h"

#include "base/check.h"

static struct log_record last;
static char last_text[LOG_LINE_MAX];

static void keep(const struct log_record *rec)
{
    last = *rec;
    (void)snprintf(last_text, sizeof(last_text), "%s", rec->text);
}

static void as_json(const char *text, char *out, size_t size)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
    struct jout j = JOUT_INIT(&b);
    struct log_record rec = { 1000, LOG_WARN, "m", text };
    log_put_json(&j, &rec);
    CHECK_OK(jout_done(&j));
    (void)snprintf(out, size, "%s", b.data + strlen("{\"time\":\"1970-01-01T00:00:01.000Z\","));
}

TEST(a_line_becomes_an_object_with_its_pairs)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        { "ready", "\"message\":\"ready\"}" },
        { "", "\"message\":\"\"}" },
        { "it is a=b", "\"message\":\"it is\",\"a\":\"b\"}" },
        { "a=b", "\"message\":\"\",\"a\":\"b\"}" },
        { "x sandbox=k3 took_ms=84", "\"message\":\"x\",\"sandbox\":\"k3\",\"took_ms\":\"84\"}" },
        { "x err=\"a b=c \\\"q\\\" \\\\ \\x41\" n=1",
          "\"message\":\"x\",\"err\":\"a b=c \\\"q\\\" \\\\ A\",\"n\":\"1\"}" },
        { "x err=several words n=1", "\"message\":\"x\",\"err\":\"several words\",\"n\":\"1\"}" },
        { "x err=\"never ends", "\"message\":\"x\",\"err\":\"never ends\"}" },
        { "x e=\"\\", "\"message\":\"x\",\"e\":\"\\\\\"}" },
        { "x e= f=", "\"message\":\"x\",\"e\":\"\",\"f\":\"\"}" },
        { "x a=1 a=2 level=none message=3", "\"message\":\"x\",\"a\":\"1\"}" },
        { "x B=1 c=2", "\"message\":\"x B=1\",\"c\":\"2\"}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char got[1024];
        as_json(cases[i].text, got, sizeof(got));
        CHECK_STR(got + strlen("\"level\":\"warn\",\"module\":\"m\","), cases[i].json);
    }
}

TEST(what_was_quoted_comes_back)
{
    char quoted[200], text[256], got[64];
    const char *at = text;
    struct log_field f;
    (void)snprintf(text, sizeof(text), "v=%s",
                   log_quote(quoted, sizeof(quoted),
                             "a \"b\"\\\n\xff"
                             "c=d"));
    CHECK(log_field_next(&at, &f));
    CHECK_EQ(log_field_value(&f, got, sizeof(got)), 11);
    CHECK_STR(got, "a \"b\"\\\n\xff"
                   "c=d");
    CHECK(!log_field_next(&at, &f));
    CHECK_EQ(log_field_value(&f, got, 4), 3); /* cut, and still terminated */
    at = "a=\"5\\x00\\x41\"";
    CHECK(log_field_next(&at, &f));
    CHECK_EQ(log_field_value(&f, got, sizeof(got)), 5); /* no NUL out of nowhere */
    CHECK_STR(got, "5x00A");
}

TEST(a_request_s_lines_carry_its_id)
{
    char big[LOG_LINE_MAX * 2];
    log_set_tap(keep);
    log_set_request("r1");
    log_line(LOG_ERROR, "x", "with %d", 1);
    CHECK_STR(last_text, "with 1 req=r1");
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    log_line(LOG_ERROR, "x", "%s", big); /* cut, but not its id */
    CHECK_STR(last_text + strlen(last_text) - 7, " req=r1");
    log_set_request(NULL);
    log_line(LOG_ERROR, "x", "without\n");
    CHECK_STR(last_text, "without?");
    log_line(LOG_DEBUG, "x", "below the level");
    CHECK_STR(last_text, "without?");
    log_set_tap(NULL);
}
