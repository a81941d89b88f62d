#include "cli/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/object.h"

static char home[] = "/tmp/warren-context-XXXXXX";

static void use_home(void)
{
    if (home[strlen(home) - 1] == 'X')
        CHECK(mkdtemp(home) != NULL);
    CHECK_OK(setenv("XDG_CONFIG_HOME", home, 1));
}

static void clear_home(void)
{
    char path[128];
    static const char *const files[] = { "warren/contexts.json", "warren/contexts.json.new",
                                         "warren", "" };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CHECK(snprintf(path, sizeof(path), "%s/%s", home, files[i]) < (int)sizeof(path));
        (void)remove(path);
    }
    memcpy(home + strlen(home) - 6, "XXXXXX", 6);
}

static void put(const char *name, const char *url)
{
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    CHECK_OK(contexts_read_to_change(&all, NULL));
    CHECK_OK(contexts_put(all, name, json_pack("{s:s,s:s}", "url", url, "key", "k"), NULL));
    CHECK_OK(contexts_write(all, NULL));
}

static void write_file(const char *text, mode_t mode)
{
    char path[128];
    CHECK(snprintf(path, sizeof(path), "%s/warren/contexts.json", home) < (int)sizeof(path));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

TEST(a_context_is_kept_where_only_its_owner_can_read)
{
    char path[128];
    struct stat st;
    use_home();
    put("one", "https://one:7071");
    put("two", "https://two:7071");
    CHECK(snprintf(path, sizeof(path), "%s/warren/contexts.json", home) < (int)sizeof(path));
    CHECK_OK(stat(path, &st));
    CHECK_EQ(st.st_mode & 0777, 0600);
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    CHECK_OK(contexts_read(&all, NULL));
    CHECK_STR(member_text(contexts_get(all, "one"), "url"), "https://one:7071");
    CHECK_STR(member_text(contexts_get(all, "two"), "url"), "https://two:7071");
    CHECK(contexts_current(all) == NULL);
    clear_home();
}

TEST(what_a_crash_left_does_not_stop_the_next_change)
{
    char path[128];
    use_home();
    put("one", "https://one");
    CHECK(snprintf(path, sizeof(path), "%s/warren/contexts.json.new", home) < (int)sizeof(path));
    CHECK_OK(symlink("/dev/full", path));
    put("two", "https://two");
    _cleanup_(contexts_freep) struct contexts *all = NULL;
    CHECK_OK(contexts_read(&all, NULL));
    CHECK_EQ(json_object_size(contexts_all(all)), 2);
    clear_home();
}

TEST(a_context_that_goes_is_no_longer_the_current_one)
{
    use_home();
    put("one", "https://one");
    {
        _cleanup_(contexts_freep) struct contexts *all = NULL;
        CHECK_OK(contexts_read_to_change(&all, NULL));
        CHECK_EQ(contexts_use(all, "none", NULL), -ENOENT);
        CHECK_OK(contexts_use(all, "one", NULL));
        CHECK_STR(contexts_current(all), "one");
        CHECK_OK(contexts_remove(all, "one", NULL));
        CHECK(contexts_current(all) == NULL);
        CHECK_EQ(contexts_remove(all, "one", NULL), -ENOENT);
        CHECK_OK(contexts_use(all, CONTEXT_LOCAL, NULL));
    }
    clear_home();
}

TEST(a_file_that_is_no_list_of_contexts_is_refused)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"contexts\": []}",
        "{\"contexts\": {\"a\": 1}}",
        "{\"contexts\": {\"a\": {\"url\": \"x\"}}}",
        "{\"contexts\": {\"../a\": {\"url\": \"x\", \"key\": \"k\"}}}"
    };
    use_home();
    put("one", "https://one");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        _cleanup_(contexts_freep) struct contexts *all = NULL;
        struct err err = ERR_INIT;
        write_file(texts[i], 0600);
        CHECK_EQ(contexts_read(&all, &err), -EINVAL);
        CHECK(strstr(err.msg, "contexts.json") != NULL);
    }
    clear_home();
}

TEST(a_name_is_the_host_of_an_address)
{
    static const char *const names[][2] = { { "https://box.example.org:7071", "box.example.org" },
                                            { "http://10.0.0.5", "10.0.0.5" },
                                            { "https://host/path", "host" },
                                            { "https://[::1]:7071", NULL },
                                            { "https://local", NULL } };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *name = context_name_of(names[i][0]);
        CHECK((name == NULL) == (names[i][1] == NULL));
        if (name)
            CHECK_STR(name, names[i][1]);
        free(name);
    }
    CHECK_EQ(context_name_check("", NULL), -EINVAL);
    CHECK_EQ(context_name_check("-a", NULL), -EINVAL);
    CHECK_EQ(context_name_check("a b", NULL), -EINVAL);
    CHECK_OK(context_name_check("a-b_c.d", NULL));
}
