#include "core/oci.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"

#define A "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int parse(const char *text, struct oci_manifest *m)
{
    return oci_manifest_parse(text, strlen(text), m, NULL);
}

TEST(a_manifest_comes_back_as_it_was_written)
{
    struct oci_blob config = { A, OCI_CONFIG, 7 },
                    layers[] = { { B, OCI_LAYER_GZIP, 8 }, { A, OCI_LAYER, 9 } };
    char *text = oci_manifest_text(&config, layers, 2);
    struct oci_manifest m;
    CHECK_OK(parse(text, &m));
    CHECK_EQ(m.n, 2);
    CHECK_STR(m.config.digest, A);
    CHECK_STR(m.layers[0].media_type, OCI_LAYER_GZIP);
    CHECK_EQ(m.layers[1].size, 9);
    CHECK(!oci_is_index(text, strlen(text)));
    oci_manifest_done(&m);
    free(text);
}

TEST(what_is_no_manifest_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"schemaVersion\":1}",
        "{\"config\":{},\"layers\":[]}",
        "{\"config\":{\"digest\":\"" A "\",\"size\":-1},\"layers\":[]}",
        "{\"config\":{\"digest\":\"sha256:../x\",\"size\":1},\"layers\":[]}",
        "{\"config\":{\"digest\":\"" A "\",\"size\":1},\"layers\":[{\"digest\":\"" B "\"}]}",
    };
    struct oci_manifest m;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(parse(bad[i], &m), -EINVAL);
}

static int pick(const char *text, const char *platform, const char *ref, char digest[DIGEST_SIZE])
{
    struct oci_blob b = { .size = 0 };
    struct err err = ERR_INIT;
    int r = oci_index_pick(text, strlen(text), platform, ref, &b, &err);
    memcpy(digest, b.digest, DIGEST_SIZE);
    return r;
}

TEST(an_index_gives_the_platform_that_is_asked_for)
{
    static const char text[] =
        "{\"manifests\":["
        "{\"digest\":\"" A
        "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\","
        "\"variant\":\"v8\"}},"
        "{\"digest\":\"" B
        "\",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}},"
        "{\"digest\":\"" A "\",\"size\":1,\"platform\":{\"os\":\"unknown\","
        "\"architecture\":\"unknown\"}}]}";
    char d[DIGEST_SIZE];
    CHECK(oci_is_index(text, strlen(text)));
    CHECK_OK(pick(text, "linux/amd64", NULL, d));
    CHECK_STR(d, B);
    CHECK_OK(pick(text, "linux/arm64", NULL, d));
    CHECK_STR(d, A);
    CHECK_OK(pick(text, "linux/arm64/v8", NULL, d));
    CHECK_EQ(pick(text, "linux/arm64/v7", NULL, d), -ENOENT);
    CHECK_EQ(pick(text, "windows/amd64", NULL, d), -ENOENT);
}

TEST(of_entries_that_fit_the_name_decides)
{
    static const char text[] =
        "{\"manifests\":["
        "{\"digest\":\"" A "\",\"size\":1},"
        "{\"digest\":\"" B "\",\"size\":1,\"annotations\":{\"org.opencontainers.image.ref.name\":"
        "\"two\"}}]}";
    char d[DIGEST_SIZE];
    CHECK_OK(pick(text, NULL, "repo:two", d));
    CHECK_STR(d, B);
    CHECK_OK(pick(text, NULL, "repo:one", d));
    CHECK_STR(d, A);
}

static const char config_text[] =
    "{\"architecture\":\"amd64\",\"os\":\"linux\",\"created\":\"2024-05-06T07:08:09.5Z\","
    "\"config\":{\"Env\":[\"A=1\",\"B=x=y\",\"broken\",\"=z\"],\"Cmd\":[\"a\",\"b\"],\"User\":\"u\","
    "\"WorkingDir\":\"/w\",\"ExposedPorts\":{\"80/tcp\":{}},\"Labels\":{\"l\":\"m\"},\"Entrypoint\":null},"
    "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" A "\"]},"
    "\"history\":[{\"created_by\":\"x\",\"empty_layer\":true},{\"comment\":\"y\"}]}";

TEST(a_configuration_is_read_copied_and_written_the_same)
{
    struct image_config c, copy, again;
    CHECK_OK(image_config_parse(config_text, strlen(config_text), &c, NULL));
    CHECK_EQ(c.env.n, 2);
    CHECK_STR(pairs_get(&c.env, "B"), "x=y");
    CHECK_STR(c.cmd[1], "b");
    CHECK(c.cmd[2] == NULL && c.entrypoint == NULL);
    CHECK_STR(c.ports[0], "80/tcp");
    CHECK_EQ(c.created_ms, 1714979289000);
    CHECK(c.history[0].empty && !c.history[1].empty);
    CHECK_STR(c.history[1].created_by, "y");
    CHECK_OK(image_config_copy(&c, &copy));
    image_config_done(&c);
    CHECK_OK(image_config_add(&copy, B, "more", 5000));
    CHECK_OK(image_config_add(&copy, NULL, "settings", 0));
    char *text = image_config_text(&copy);
    CHECK_OK(image_config_parse(text, strlen(text), &again, NULL));
    CHECK_EQ(again.n_diff_ids, 2);
    CHECK_STR(again.diff_ids[1], B);
    CHECK_EQ(again.n_history, 4);
    CHECK(again.history[3].empty);
    char *twice = image_config_text(&again);
    CHECK_STR(text, twice);
    free(text);
    free(twice);
    image_config_done(&copy);
    image_config_done(&again);
}

TEST(a_malformed_configuration_is_refused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"rootfs\":{\"diff_ids\":[\"x\"]}}",
        "{\"config\":{\"Cmd\":[1]}}",
        "{\"config\":{\"Cmd\":\"sh\"}}",
        "{\"config\":{\"Labels\":{\"a\":1}}}",
    };
    struct image_config c;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_EQ(image_config_parse(bad[i], strlen(bad[i]), &c, NULL), -EINVAL);
}
