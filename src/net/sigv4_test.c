/* The signatures here are those that AWS publishes for these requests. */
#include "net/sigv4.h"

#include <errno.h>

#include "base/check.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define FIELD(name_, value_)           \
    {                                  \
        { name_, sizeof(name_) - 1 },  \
        {                              \
            value_, sizeof(value_) - 1 \
        }                              \
    }
#define TEXT(s_) ((struct text){ s_, sizeof(s_) - 1 })

static const struct sigv4_key suite = { "AKIDEXAMPLE", "us-east-1", "service",
                                        "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 40 };
static const struct sigv4_key s3 = { "AKIAIOSFODNN7EXAMPLE", "us-east-1", "s3",
                                     "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", 40 };

static void check(const struct sigv4_key *key, const struct sigv4_request *q, const char *want)
{
    _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
    CHECK_OK(sigv4_sign(key, q, &out));
    const char *at = strstr(out.data, "Signature=");
    CHECK(at);
    CHECK_STR(at + 10, want);
}

TEST(requests_of_the_published_suite_are_signed_as_published)
{
    static const struct head_field fields[] = { FIELD("Host", "example.amazonaws.com"),
                                                FIELD("X-Amz-Date", "20150830T123600Z") };
    static const struct {
        const char *method, *target, *want;
    } cases[] = {
        { "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
        { "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
        { "GET", "/?Param2=value2&Param1=value1",
          "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
        { "POST", "/?Param1=value1",
          "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11" },
        { "GET", "/?Param1=value1",
          "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sigv4_request q = { { cases[i].method, strlen(cases[i].method) },
                                   { cases[i].target, strlen(cases[i].target) },
                                   fields,
                                   ARRAY_LEN(fields),
                                   "20150830T123600Z",
                                   EMPTY };
        check(&suite, &q, cases[i].want);
    }
}

TEST(a_form_and_its_hash_are_signed_as_published)
{
    static const struct head_field fields[] = {
        FIELD("Content-Type", "application/x-www-form-urlencoded"),
        FIELD("Host", "example.amazonaws.com"), FIELD("X-Amz-Date", "20150830T123600Z")
    };
    char hash[SIGV4_HASH_SIZE];
    sigv4_hash("Param1=value1", 13, hash);
    struct sigv4_request q = { TEXT("POST"), TEXT("/"), fields, 3, "20150830T123600Z", hash };
    check(&suite, &q, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
}

TEST(s3s_examples_are_signed_as_published)
{
    static const struct head_field fields[] = { FIELD("x-amz-date", "20130524T000000Z"),
                                                FIELD("x-amz-content-sha256", EMPTY),
                                                FIELD("Host", "examplebucket.s3.amazonaws.com"),
                                                FIELD("Range", "bytes=0-9") };
    struct sigv4_request q = {
        TEXT("GET"), TEXT("/test.txt"), fields, 4, "20130524T000000Z", EMPTY
    };
    check(&s3, &q, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    q.n_fields = 3;
    q.target = TEXT("/?lifecycle");
    check(&s3, &q, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    q.target = TEXT("/?prefix=J&max-keys=2");
    check(&s3, &q, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* The same path, which is encoded once more elsewhere. */
TEST(what_is_signed_as_s3_is_told_by_its_whole_name)
{
    static const struct head_field fields[] = { FIELD("Host", "a.test"),
                                                FIELD("X-Amz-Date", "20150830T123600Z") };
    static const struct sigv4_request q = {
        { "GET", 3 }, { "/a%20b", 6 }, fields, 2, "20150830T123600Z", EMPTY
    };
    static const struct {
        const char *service;
        bool s3;
    } cases[] = {
        { "s3", true },          { "s3express", true },
        { "s3-outposts", true }, { "s3-object-lambda", true },
        { "s3tables", false },   { "lambda", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct sigv4_key key = suite;
        key.service = cases[i].service;
        _cleanup_(buf_done) struct buf once = BUF_INIT(4096), twice = BUF_INIT(4096);
        CHECK_EQ(sigv4_is_s3(key.service), cases[i].s3);
        CHECK_OK(sigv4_sign(&key, &q, &once));
        struct sigv4_request plain = q;
        plain.target = TEXT("/a b"); /* what a path that is taken as it is meant stands for */
        CHECK_OK(sigv4_sign(&key, &plain, &twice));
        CHECK_EQ(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0,
                 cases[i].s3);
    }
}

TEST(a_date_is_written_as_aws_reads_it)
{
    char date[SIGV4_DATE_SIZE];
    sigv4_date(1440938160, date);
    CHECK_STR(date, "20150830T123600Z");
}
