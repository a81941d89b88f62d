#include "s3/listing.h"

#include <errno.h>

#include "base/check.h"

static int note(void *ctx, const struct s3_object *o, struct err *err)
{
    char *out = ctx;
    size_t n = strlen(out);
    (void)snprintf(out + n, 512 - n, "%s:%llu ", o->key, (unsigned long long)o->size);
    return strcmp(o->key, "stop") == 0 ? err_set(err, ECANCELED, "stop") : 0;
}

static int read_page(const char *text, char out[512], struct listing_end *end)
{
    out[0] = '\0';
    return listing_read(text, strlen(text), note, out, end, NULL);
}

TEST(a_page_of_a_list)
{
    char out[512];
    struct listing_end end;
    CHECK_OK(
        read_page("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><Name>b</Name><Prefix/>"
                  "<IsTruncated>true</IsTruncated><Contents><Key>a/b</Key><LastModified>"
                  "2026-11-16T07:27:15.000Z</LastModified><Size>3</Size><Owner><ID>1</ID></Owner>"
                  "</Contents><Contents><Size>0</Size><Key>c&amp;d</Key></Contents>"
                  "<NextContinuationToken>t+/=</NextContinuationToken></ListBucketResult>",
                  out, &end));
    CHECK_STR(out, "a/b:3 c&d:0 ");
    CHECK(end.more);
    CHECK_STR(end.token, "t+/=");
    CHECK_OK(read_page("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>", out,
                       &end));
    CHECK(!end.more);
}

TEST(other_answers_are_refused)
{
    static const char *const bad[] = {
        "<Error><Code>NoSuchBucket</Code></Error>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key></Key><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        ("<ListBucketResult><Contents><Key>a</Key><Size>1</Size><LastModified>now</LastModified>"
         "</Contents></ListBucketResult>"),
        "<ListBucketResult><Contents><Key>a</Key><Size>1</Size></Contents>",
    };
    char out[512];
    struct listing_end end;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(read_page(bad[i], out, &end), -EBADMSG);
    CHECK_EQ(read_page("<ListBucketResult><Contents><Key>stop</Key><Size>1</Size></Contents>"
                       "</ListBucketResult>",
                       out, &end),
             -ECANCELED);
}

TEST(the_name_of_a_failure)
{
    char code[S3_CODE_MAX];
    static const char text[] = "<Error><Code>NoSuchKey</Code><Message>m</Message></Error>";
    listing_code(text, sizeof(text) - 1, code);
    CHECK_STR(code, "NoSuchKey");
    listing_code("<Error><Code>a b</Code></Error>", 31, code);
    CHECK_STR(code, "");
    listing_code("<html>", 6, code);
    CHECK_STR(code, "");
}
