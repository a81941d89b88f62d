#include "cli/project.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

static int read_project(const char *text, struct project **ret_p, struct err *err)
{
    char dir[] = "/tmp/warren-project-XXXXXX", file[64];
    CHECK(mkdtemp(dir) != NULL);
    CHECK(snprintf(file, sizeof(file), "%s/warren.toml", dir) < (int)sizeof(file));
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
    int r = project_read(file, ret_p, err);
    (void)unlink(file);
    (void)rmdir(dir);
    return r;
}

TEST(a_project_becomes_the_shape_of_a_sandbox)
{
    static const char text[] = "name = 'demo'\nimage = \"tiny\"\nmemory = \"1g\"\ncpus = 0.5\n"
                               "disk = 2048\ntimeout = '1h'\nvolumes = ['data:/data:ro']\n"
                               "rules = ['allow *.example.com 443']\nports = [80, 8000]\n"
                               "start = 'exec serve'\n[env]\nA = 'b=c'\n";
    _cleanup_(project_freep) struct project *p = NULL;
    _cleanup_(json_decrefp) json_t *body = NULL;
    struct err err = ERR_INIT;
    CHECK_OK(read_project(text, &p, &err));
    CHECK_OK(shape_body(&p->shape, &body, &err));
    json_t *want = json_loads(
        "{\"name\":\"demo\",\"image\":\"tiny\",\"memory_mb\":1024,\"cpus\":0.5,\"disk_mb\":2048,"
        "\"timeout_s\":3600,\"volumes\":[{\"volume\":\"data\",\"path\":\"/data\",\"read_only\":true}],"
        "\"network\":{\"rules\":[\"allow *.example.com 443\"]},\"env\":{\"A\":\"b=c\"}}",
        0, NULL);
    CHECK(json_equal(body, want));
    json_decref(want);
    CHECK_EQ(p->nports, 2);
    CHECK_EQ(p->ports[1], 8000);
    CHECK_EQ(json_array_size(p->start), 3);
    CHECK_STR(p->image, "tiny");
}

TEST(a_build_names_its_image_after_the_project)
{
    _cleanup_(project_freep) struct project *p = NULL, *q = NULL;
    CHECK_OK(read_project("name = 'Demo'\nbuild = '.'\n", &p, NULL));
    CHECK_STR(p->image, "project-demo");
    CHECK_OK(read_project("name = 'x'\ndockerfile = 'D'\nimage = 'mine'\n", &q, NULL));
    CHECK_STR(q->image, "mine");
    CHECK_STR(q->build, ".");
}

TEST(a_wrong_line_is_told_by_its_number)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "\nmemroy = '1g'", ":2: there is no key 'memroy'; did you mean 'memory'?" },
        { "memory = true", ":1: 'memory' takes a size" },
        { "memory = '1q'", "takes a size" },
        { "memory = -1", "takes a size" },
        { "timeout = 'soon'", "takes a time" },
        { "cpus = 'two'", "takes a number" },
        { "pids = '3'", "takes a whole number" },
        { "image = 3", "takes text" },
        { "image = []", "takes text" },
        { "volumes = 'a:/b'", "takes a list of texts" },
        { "volumes = [1]", "takes a list of texts" },
        { "ports = [0]", "takes a list of ports" },
        { "ports = [65536]", "takes a list of ports" },
        { "ports = ['80']", "takes a list of ports" },
        { "start = []", "takes a command" },
        { "start = [1]", "takes a command" },
        { "env = 'A=b'", "takes a table" },
        { "[env]\nA = 1", ":1: 'env' takes a table" },
        { "[image]", "takes text" },
        { "copy = ['here']", ":1: 'copy' takes \"FROM:TO\"" },
        { "copy = [':x']", "FROM:TO" },
        { "copy = ['x:']", "FROM:TO" },
        { "name = ", "line 1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct project *p = NULL;
        struct err err = ERR_INIT;
        CHECK_EQ(read_project(cases[i].text, &p, &err), -EINVAL);
        if (!strstr(err.msg, cases[i].says))
            (void)fprintf(stderr, "%s: %s\n", cases[i].text, err.msg);
        CHECK(strstr(err.msg, cases[i].says) != NULL && strstr(err.msg, "warren.toml"));
    }
}

TEST(a_directory_gives_the_name)
{
    static const char *const names[][2] = { { "/home/me/my project", "my-project" },
                                            { "/x/.hidden", "hidden" },
                                            { "/", NULL },
                                            { "/caf\xc3\xa9", "caf--" } };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *name = project_name_of(names[i][0]);
        CHECK((name == NULL) == (names[i][1] == NULL));
        if (name)
            CHECK_STR(name, names[i][1]);
        free(name);
    }
}
