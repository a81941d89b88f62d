#include "cli/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

TEST(every_command_is_fully_described)
{
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        CHECK(c->name && c->summary && c->synopsis && c->description && c->run);
        CHECK(c->hidden || (c->examples && c->examples[0].line));
        CHECK(c->summary[strlen(c->summary) - 1] != '.');
        for (size_t k = 0; k < c->nopts; k++) {
            CHECK((c->opts[k].kind == OPT_FLAG) == (c->opts[k].arg == NULL));
            CHECK(c->opts[k].help[strlen(c->opts[k].help) - 1] == '.');
            CHECK(c->opts[k].offset < c->opts_size);
        }
    }
}

TEST(no_option_is_spelled_like_another)
{
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *c = commands[i];
        for (size_t a = 0; a < c->nopts; a++) {
            for (size_t b = a + 1; b < c->nopts; b++) {
                CHECK(strcmp(c->opts[a].name, c->opts[b].name) != 0);
                CHECK(!c->opts[a].letter || c->opts[a].letter != c->opts[b].letter);
            }
            for (size_t g = 0; g < global_opts_n; g++) {
                CHECK(strcmp(c->opts[a].name, global_opts[g].name) != 0);
                CHECK(!c->opts[a].letter || c->opts[a].letter != global_opts[g].letter);
            }
        }
    }
}

#define W(word_) (char *)(uintptr_t)(word_)

TEST(commands_are_found_by_one_word_two_or_an_alias)
{
    char *run[] = { W("run"), W("ls") }, *ls[] = { W("list") };
    char *import[] = { W("image"), W("import"), W("x") }, *image[] = { W("image") };
    int n;
    CHECK(command_find(2, run, &n) == &cmd_run && n == 1);
    CHECK(command_find(1, ls, &n) == &cmd_ls && n == 1);
    CHECK(command_find(3, import, &n) == &cmd_image_import && n == 2);
    CHECK(command_find(1, image, &n) == NULL);
    CHECK(command_find(0, image, &n) == NULL);
}

TEST(every_help_page_has_its_sections)
{
    static const char *const sections[] = { "NAME\n", "SYNOPSIS\n", "DESCRIPTION\n",
                                            "EXIT STATUS\n", "GLOBAL OPTIONS\n" };
    for (size_t i = 0; i < commands_n; i++) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = tmpfile();
        help_command(f, commands[i]);
        size = (size_t)ftell(f);
        rewind(f);
        text = calloc(1, size + 1);
        CHECK_EQ(fread(text, 1, size, f), size);
        (void)fclose(f);
        for (size_t k = 0; k < ARRAY_LEN(sections); k++)
            CHECK(strstr(text, sections[k]) != NULL);
        CHECK(strchr(text, '\x1b') == NULL); /* a file gets no bold */
    }
}

TEST(one_screen_names_every_command)
{
    char text[4096] = " ";
    size_t lines = 0, column = 0;
    FILE *f = tmpfile();
    help_screen(f);
    rewind(f);
    size_t n = fread(text + 1, 1, sizeof(text) - 2, f);
    (void)fclose(f);
    CHECK(n > 0 && n < sizeof(text) - 2);
    for (char *p = text; *p; p++) {
        CHECK(++column <= 80 + 1);
        if (*p == '\n') {
            *p = ' ';
            column = 0;
            lines++;
        }
    }
    CHECK(lines >= 24 && lines < 40); /* the prompt takes one */
    for (size_t i = 0; i < commands_n; i++) {
        char word[64];
        size_t len = strcspn(commands[i]->name, " ");
        (void)snprintf(word, sizeof(word), " %.*s ", (int)len, commands[i]->name);
        CHECK(commands[i]->hidden || strstr(text, word) != NULL);
    }
}

TEST(there_is_no_completion_for_an_unknown_shell)
{
    CHECK_EQ(completion_print(stdout, "csh"), -EINVAL);
}
