#include "registry/manifest.h"

#include <errno.h>

#include "base/check.h"

#define HEX16 "0123456789abcdef"
#define A "sha256:" HEX16 HEX16 HEX16 HEX16
#define B "sha256:" HEX16 HEX16 HEX16 "fedcba9876543210"
#define CONFIG                                                                \
    "\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\"," \
    "\"digest\":\"" A "\",\"size\":10}"
#define LAYER                                                                        \
    "{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"" B \
    "\",\"size\":5}"
#define OCI "application/vnd.oci.image.manifest.v1+json"

static int parse(const char *text, struct manifest *m, struct err *err)
{
    return manifest_parse(text, strlen(text), OCI, m, err);
}

TEST(a_manifest_is_read)
{
    _cleanup_(manifest_done) struct manifest m = { 0 };
    struct err err = ERR_INIT;
    CHECK_OK(parse("{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER "," LAYER "]}", &m, &err));
    CHECK_EQ(m.nlayers, 2);
    CHECK_EQ(m.config.size, 10);
    CHECK_STR(m.layers[1].digest, B);
    CHECK_STR(m.media_type, OCI);
}

TEST(what_is_no_manifest_is_refused_by_name)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "{\"schemaVersion\":1,\"fsLayers\":[]}",
        "{" CONFIG ",\"layers\":[]}",
        "{" CONFIG ",\"layers\":[" LAYER "],\"manifests\":[]}",
        "{\"layers\":[" LAYER "]}",
        "{" CONFIG ",\"layers\":[{\"digest\":\"sha256:1\",\"size\":1}]}",
        "{" CONFIG ",\"layers\":[{\"digest\":\"" A "\",\"size\":-1}]}",
        "{" CONFIG ",\"layers\":[{\"digest\":\"" A "\",\"size\":99999999999999}]}",
        "{" CONFIG ",\"layers\":[{\"digest\":\"" A "\",\"size\":1,\"urls\":[\"http://x\"]}]}",
        "{" CONFIG ",\"layers\":[{\"digest\":\"" A "\",\"size\":1,\"mediaType\":\"a b\"}]}",
        "{\"config\":{\"mediaType\":\"x/helm\",\"digest\":\"" A "\",\"size\":1},\"layers\":[" LAYER
        "]}",
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct manifest m = { 0 };
        struct err err = ERR_INIT;
        CHECK(parse(cases[i], &m, &err) < 0);
        CHECK_STR(failure_name(err.failure), "invalid_image");
    }
}

#define ENTRY(digest_, os_, arch_, more_)                                                          \
    "{\"mediaType\":\"" OCI "\",\"digest\":\"" digest_ "\",\"size\":9,\"platform\":{\"os\":\"" os_ \
    "\",\"architecture\":\"" arch_ "\"" more_ "}}"

static int choose(const char *text, const char *platform, struct descriptor *d, struct err *err)
{
    struct platform p;
    CHECK_OK(platform_parse(platform, &p, err));
    return index_choose(text, strlen(text), &p, d, err);
}

TEST(an_index_gives_the_entry_of_the_platform)
{
    static const char text[] = "{\"manifests\":[" ENTRY(A, "linux", "s390x", "") "," ENTRY(
        B, "linux", "arm", ",\"variant\":\"v7\"") "]}";
    struct descriptor d;
    struct err err = ERR_INIT;
    CHECK_OK(choose(text, "linux/s390x", &d, &err));
    CHECK_STR(d.digest, A);
    CHECK_OK(choose(text, "linux/arm/v7", &d, &err));
    CHECK_STR(d.digest, B);
    CHECK_OK(choose(text, "arm", &d, &err));
    CHECK(choose(text, "linux/arm/v6", &d, &err) < 0);
    CHECK_STR(failure_name(err.failure), "unsupported_platform");
    CHECK(strstr(err.msg, "linux/s390x, linux/arm/v7"));
}

TEST(platforms_are_checked)
{
    struct platform p;
    struct err err = ERR_INIT;
    char text[100];
    CHECK_OK(platform_parse("linux/aarch64", &p, &err));
    CHECK_STR(platform_text(&p, text), "linux/arm64");
    CHECK_OK(platform_parse(NULL, &p, &err));
    CHECK_STR(p.os, "linux");
    CHECK_EQ(platform_parse("linux/", &p, &err), -EINVAL);
    CHECK_EQ(platform_parse("/arm64", &p, &err), -EINVAL);
    CHECK_EQ(platform_parse("linux/a/b/c", &p, &err), -EINVAL);
    CHECK_EQ(platform_parse("linux/A", &p, &err), -EINVAL);
}

static int check(const char *text, size_t nlayers, struct err *err)
{
    struct platform p;
    char(*ids)[SHA_SIZE] = NULL;
    CHECK_OK(platform_parse("linux/amd64", &p, err));
    int r = config_check(text, strlen(text), nlayers, &p, &ids, err);
    if (r >= 0)
        CHECK_STR(ids[0], A);
    free(ids);
    return r;
}

TEST(a_configuration_must_agree_with_its_manifest)
{
    struct err err = ERR_INIT;
    CHECK_OK(check("{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"" A
                   "\"]}}",
                   1, &err));
    CHECK(check("{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[\"" A
                "\"]}}",
                2, &err) < 0);
    CHECK_STR(failure_name(err.failure), "invalid_image");
    CHECK(check("{\"os\":\"linux\",\"architecture\":\"arm64\",\"rootfs\":{\"diff_ids\":[\"" A
                "\"]}}",
                1, &err) < 0);
    CHECK_STR(failure_name(err.failure), "unsupported_platform");
    CHECK(check("{\"os\":\"linux\",\"architecture\":\"amd64\",\"rootfs\":{\"diff_ids\":[1]}}", 1,
                &err) < 0);
    CHECK(check("no", 1, &err) < 0);
    CHECK_STR(failure_name(err.failure), "invalid_image");
}
