#include "dockerfile/dockerfile.h"

#include <errno.h>

#include "base/buf.h"
#include "base/check.h"

/* One line a step: KIND {json} word|word name=value, and flags and heredocs behind it. */
static void dump_step(struct buf *out, const struct dockerfile_step *s)
{
    CHECK_OK(buf_printf(out, "%s%s", dockerfile_kind_name(s->kind), s->json ? "[]" : ""));
    for (size_t i = 0; i < s->n_words; i++)
        CHECK_OK(buf_printf(out, "%s%s", i ? "|" : " ", s->words[i]));
    for (size_t i = 0; i < s->n_pairs; i++)
        CHECK_OK(buf_printf(out, " (%s)=(%s)", s->pairs[i].name,
                            s->pairs[i].value ? s->pairs[i].value : "-"));
    if (s->from)
        CHECK_OK(buf_printf(out, " from=%s", s->from));
    if (s->chown)
        CHECK_OK(buf_printf(out, " chown=%s", s->chown));
    if (s->chmod)
        CHECK_OK(buf_printf(out, " chmod=%s", s->chmod));
    if (s->platform)
        CHECK_OK(buf_printf(out, " platform=%s", s->platform));
    if (s->script)
        CHECK_OK(buf_puts(out, " script"));
    if (s->kind == DOCKERFILE_COPY || s->kind == DOCKERFILE_ADD)
        for (size_t i = 0; i < s->n_heredocs; i++)
            CHECK_OK(buf_printf(out, " <<%s%s{%s}", s->heredocs[i].name,
                                s->heredocs[i].expand ? "" : "'", s->heredocs[i].text));
    CHECK_OK(buf_puts(out, "\n"));
}

static void dump(struct buf *out, const struct dockerfile *f)
{
    CHECK_OK(buf_puts(out, ""));
    for (size_t i = 0; i < f->n_args; i++)
        dump_step(out, &f->args[i]);
    for (size_t i = 0; i < f->n_stages; i++) {
        const struct dockerfile_stage *stage = &f->stages[i];
        dump_step(out, stage->from);
        if (stage->name)
            CHECK_OK(buf_printf(out, "as %s\n", stage->name));
        for (size_t k = 0; k < stage->n_steps; k++)
            dump_step(out, &stage->steps[k]);
    }
}

struct row {
    const char *text, *want;
};

static void check_rows(const struct row *rows, size_t n, const char *before)
{
    for (size_t i = 0; i < n; i++) {
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
        struct dockerfile f;
        struct err err = ERR_INIT;
        CHECK_OK(buf_printf(&text, "%s%s", before, rows[i].text));
        if (dockerfile_parse(text.data, text.len, &f, NULL, &err) < 0)
            fail_msg("'%s': %s", text.data, err.msg);
        dump(&got, &f);
        dockerfile_done(&f);
        size_t skip = *before ? strlen("FROM a\n") : 0;
        if (strcmp(got.data + skip, rows[i].want) != 0)
            fail_msg("'%s' became '%s', not '%s'", text.data, got.data + skip, rows[i].want);
    }
}

TEST(each_instruction_has_its_shape)
{
    static const struct row rows[] = {
        { "RUN echo hi", "RUN echo hi\n" },
        { "run echo hi", "RUN echo hi\n" },
        { "RUN [\"a\", \"b c\"]", "RUN[] a|b c\n" },
        { "RUN [ -f /x ] && echo y", "RUN [ -f /x ] && echo y\n" },
        { "RUN [\"a\", \"b\"", "RUN [\"a\", \"b\"\n" }, /* broken JSON is the shell's */
        { "RUN ['a']", "RUN ['a']\n" },
        { "RUN   spaced   out  ", "RUN spaced   out\n" },
        { "RUN echo $HOME \"a  b\"", "RUN echo $HOME \"a  b\"\n" },
        { "CMD echo", "CMD echo\n" },
        { "CMD []", "CMD[]\n" },
        { "CMD [\"a\\u0041\"]", "CMD[] aA\n" },
        { "ENTRYPOINT [\"/init\"]", "ENTRYPOINT[] /init\n" },
        { "SHELL [\"/bin/bash\", \"-c\"]", "SHELL[] /bin/bash|-c\n" },
        { "WORKDIR /a b", "WORKDIR /a b\n" },
        { "USER app:app", "USER app:app\n" },
        { "STOPSIGNAL SIGINT", "STOPSIGNAL SIGINT\n" },
        { "EXPOSE 80 443/tcp  $P", "EXPOSE 80|443/tcp|$P\n" },
        { "VOLUME /a /b", "VOLUME /a|/b\n" },
        { "VOLUME [\"/a b\"]", "VOLUME /a b\n" },
        { "MAINTAINER Some One <a@b>", "MAINTAINER Some One <a@b>\n" },
        { "COPY a b /c/", "COPY a|b|/c/\n" },
        { "COPY [\"a b\", \"/c\"]", "COPY[] a b|/c\n" },
        { "COPY --from=x --chown=1:2 --chmod=755 a b", "COPY a|b from=x chown=1:2 chmod=755\n" },
        { "COPY -- --a b", "COPY --a|b\n" },
        { "ADD a.tar /", "ADD a.tar|/\n" },
        { "ENV a=b", "ENV (a)=(b)\n" },
        { "ENV a=b c=\"d e\" f='g' h=i\\ j", "ENV (a)=(b) (c)=(\"d e\") (f)=('g') (h)=(i\\ j)\n" },
        { "ENV a b c", "ENV (a)=(b c)\n" },
        { "ENV a \"b c\"", "ENV (a)=(\"b c\")\n" },
        { "ENV a b=c", "ENV (a)=(b=c)\n" },
        { "ENV a=", "ENV (a)=()\n" },
        { "LABEL a.b=c \"d e\"=f", "LABEL (a.b)=(c) (\"d e\")=(f)\n" },
        { "LABEL a b", "LABEL (a)=(b)\n" },
        { "ARG a", "ARG (a)=(-)\n" },
        { "ARG a=b c d=", "ARG (a)=(b) (c)=(-) (d)=()\n" },
        { "HEALTHCHECK NONE", "HEALTHCHECK\n" },
        { "HEALTHCHECK CMD curl x", "HEALTHCHECK curl x\n" },
        { "HEALTHCHECK --interval=5m --retries=3 CMD [\"x\"]", "HEALTHCHECK[] x\n" },
    };
    check_rows(rows, ARRAY_LEN(rows), "FROM a\n");
}

TEST(stages_have_names_and_a_head)
{
    static const struct row rows[] = {
        { "FROM a", "FROM a\n" },
        { "from a as B", "FROM a\nas b\n" },
        { "FROM --platform=linux/amd64 a AS b", "FROM a platform=linux/amd64\nas b\n" },
        { "ARG v=1\nFROM a:$v\nFROM 0", "ARG (v)=(1)\nFROM a:$v\nFROM 0\n" },
        { "\xef\xbb\xbf"
          "FROM a",
          "FROM a\n" },
        { "FROM a\r\nRUN b\r\n", "FROM a\nRUN b\n" },
        { "   FROM a\n\t# indented\n  RUN b", "FROM a\nRUN b\n" },
    };
    check_rows(rows, ARRAY_LEN(rows), "");
}

TEST(lines_continue_and_comments_between_them_vanish)
{
    static const struct row rows[] = {
        { "RUN a \\\n  b", "RUN a   b\n" },
        { "RUN a \\\n# no\n  # no\nb", "RUN a b\n" },
        { "RUN a \\\n\n b", "RUN a  b\n" },
        { "RUN a \\  \n b", "RUN a  b\n" },
        { "RUN a \\\r\n b", "RUN a  b\n" },
        { "RUN echo # not a comment", "RUN echo # not a comment\n" },
        { "RUN a\\\\\nRUN b", "RUN a\\\\\nRUN b\n" }, /* an escaped escape ends the line */
        { "RUN a \\", "RUN a\n" },
        { "ENV a=b \\\n    c=d", "ENV (a)=(b) (c)=(d)\n" },
        { "RUN \\\n a", "RUN a\n" },
        { "R\\\nUN a", "RUN a\n" },
    };
    check_rows(rows, ARRAY_LEN(rows), "FROM a\n");
}

TEST(directives_come_first)
{
    static const struct row rows[] = {
        { "# escape=`\nFROM a\nRUN b `\n c\\", "FROM a\nRUN b  c\\\n" },
        { "#escape = `\nFROM a\nRUN b `\n c", "FROM a\nRUN b  c\n" },
        { "# syntax=docker/dockerfile:1\n# escape=`\nFROM a\nRUN b `\n c", "FROM a\nRUN b  c\n" },
        { "# syntax = docker.io/docker/dockerfile:1.7\nFROM a", "FROM a\n" },
        { "# check=skip=all\nFROM a", "FROM a\n" },
        { "# a comment\n# escape=`\nFROM a\nRUN b \\\n c", "FROM a\nRUN b  c\n" },
        { "\n# escape=`\nFROM a\nRUN b \\\n c", "FROM a\nRUN b  c\n" },
        { "# unknown=x\nFROM a", "FROM a\n" },
        { "FROM a\n# escape=`\nRUN b \\\n c", "FROM a\nRUN b  c\n" },
    };
    check_rows(rows, ARRAY_LEN(rows), "");
}

TEST(heredocs_belong_to_their_instruction)
{
    static const struct row rows[] = {
        { "RUN <<EOF\na\n  b\nEOF\nRUN c", "RUN a\n  b\n\nRUN c\n" },
        { "RUN <<EOF\n#!/bin/x\na\nEOF", "RUN #!/bin/x\na\n script\n" },
        { "RUN <<-EOF\n\ta\n\t\tb\n\tEOF", "RUN a\nb\n\n" },
        { "RUN cat <<EOF > /x\na\nEOF", "RUN cat <<EOF > /x\na\nEOF\n\n" },
        { "RUN cat <<A <<B\n1\nA\n2\nB", "RUN cat <<A <<B\n1\nA\n2\nB\n\n" },
        { "RUN cat <<EOF>/x\na\nEOF", "RUN cat <<EOF>/x\na\nEOF\n\n" },
        { "RUN cat <<'E F'\na\nE F", "RUN cat <<'E F'\na\nE F\n\n" },
        { "RUN cat <<<word", "RUN cat <<<word\n" },
        { "RUN echo $((1<<2))", "RUN echo $((1<<2))\n" },
        { "RUN echo \"<<EOF\"", "RUN echo \"<<EOF\"\n" },
        { "RUN <<EOF\n# kept\na \\\n\nb\nEOF", "RUN # kept\na \\\n\nb\n\n" },
        { "RUN 3<<EOF cat\nx\nEOF", "RUN 3<<EOF cat\nx\nEOF\n\n" },
        { "RUN <<EOF\r\na\r\nEOF\r\nRUN b", "RUN a\r\n\nRUN b\n" },
        { "COPY <<EOF /x\na $b\nEOF", "COPY /x <<EOF{a $b\n}\n" },
        { "COPY <<\"EOF\" /x\na $b\nEOF", "COPY /x <<EOF'{a $b\n}\n" },
        { "COPY <<EOF /x\nEOF", "COPY /x <<EOF{}\n" },
        { "COPY a <<b <<c /d/\n1\nb\n2\nc\nRUN e", "COPY a|/d/ <<b{1\n} <<c{2\n}\nRUN e\n" },
        { "ENV a=<<EOF", "ENV (a)=(<<EOF)\n" },
        { "CMD <<EOF", "CMD <<EOF\n" },
    };
    check_rows(rows, ARRAY_LEN(rows), "FROM a\n");
}

struct bad_row {
    const char *text;
    unsigned line;
    const char *says;
};

TEST(what_is_wrong_is_told_with_its_line)
{
    static const struct bad_row rows[] = {
        { "", 0, "no FROM" },
        { "# nothing\n", 0, "no FROM" },
        { "ARG a=b", 0, "no FROM" },
        { "RUN a\nFROM b", 1, "before the first FROM" },
        { "FROM", 1, "FROM needs" },
        { "FROM a b", 1, "AS NAME" },
        { "FROM a AS", 1, "AS NAME" },
        { "FROM a AS 1x", 1, "stage's name" },
        { "FROM a AS scratch", 1, "stage's name" },
        { "FROM a AS x\nFROM b AS X", 2, "already" },
        { "FROM a\n\nFOO b", 3, "no instruction 'FOO'" },
        { "FROM a\nRUN", 2, "RUN needs" },
        { "FROM a\nRUN []", 2, "RUN needs" },
        { "FROM a\nRUN [\"a\", 1]", 2, "only strings" },
        { "FROM a\nONBUILD RUN x", 2, "ONBUILD" },
        { "FROM a\nRUN --mount=type=cache,target=/x y", 2, "'RUN --mount' is BuildKit" },
        { "FROM a\nRUN --network=none y", 2, "'RUN --network' is BuildKit" },
        { "FROM a\nRUN --security=insecure y", 2, "'RUN --security' is BuildKit" },
        { "FROM a\nCOPY --link a b", 2, "'COPY --link' is BuildKit" },
        { "FROM a\nCOPY --parents a b", 2, "'COPY --parents' is BuildKit" },
        { "FROM a\nCOPY --exclude=x a b", 2, "'COPY --exclude' is BuildKit" },
        { "FROM a\nADD --checksum=sha256:0 a b", 2, "'ADD --checksum' is BuildKit" },
        { "FROM a\nADD --keep-git-dir a b", 2, "'ADD --keep-git-dir' is BuildKit" },
        { "FROM a\nADD --from=x a b", 2, "no flag '--from" },
        { "FROM a\nADD https://x/y /z", 2, "context only" },
        { "FROM a\nADD git@host:x /z", 2, "context only" },
        { "FROM a\nCOPY a", 2, "a source and a destination" },
        { "FROM a\nCOPY [\"a\"]", 2, "a source and a destination" },
        { "FROM a\nCOPY a <<EOF\nx\nEOF", 2, "destination" },
        { "FROM a\nCOPY --from a b", 2, "needs a value" },
        { "FROM a\nCOPY --from=$x a b", 2, "no variables" },
        { "FROM a\nCOPY --from=x --from=y a b", 2, "twice" },
        { "FROM a\nRUN <<EOF\nx\n", 2, "does not end" },
        { "FROM a\nRUN b \\\n c\nCOPY <<EOF /x\ny", 4, "does not end" },
        { "FROM a\nENV a", 2, "NAME=value" },
        { "FROM a\nENV a=b c", 2, "'c' is not NAME=value" },
        { "FROM a\nENV =b", 2, "empty" },
        { "FROM a\nSHELL /bin/sh -c", 2, "array" },
        { "FROM a\nSHELL []", 2, "array" },
        { "FROM a\nHEALTHCHECK x", 2, "NONE or by CMD" },
        { "FROM a\nHEALTHCHECK --interval=x CMD y", 2, "duration" },
        { "FROM a\nHEALTHCHECK --retries=x CMD y", 2, "count" },
        { "# escape=x\nFROM a", 1, "escape" },
        { "# escape=`\n# escape=`\nFROM a", 2, "twice" },
        { "# syntax=docker/dockerfile:1-labs\nFROM a", 1, "frontend" },
        { "# syntax=example/other\nFROM a", 1, "frontend" },
        { "FROM a\nRUN \xff", 0, "UTF-8" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct dockerfile f;
        struct err err = ERR_INIT;
        unsigned line = 99;
        if (dockerfile_parse(rows[i].text, strlen(rows[i].text), &f, &line, &err) != -EINVAL)
            fail_msg("'%s' was taken", rows[i].text);
        CHECK_STR(failure_name(err.failure), "invalid_dockerfile");
        if (line != rows[i].line || !strstr(err.msg, rows[i].says))
            fail_msg("'%s': line %u, '%s'", rows[i].text, line, err.msg);
        char named[32];
        (void)snprintf(named, sizeof(named), "line %u", line);
        CHECK(line == 0 || strstr(err.msg, named));
    }
}

TEST(a_health_check_keeps_its_numbers)
{
    static const char text[] = "FROM a\nHEALTHCHECK --interval=1m30s --timeout=500ms "
                               "--start-period=1.5s --retries=4 CMD x";
    struct dockerfile f;
    CHECK_OK(dockerfile_parse(text, sizeof(text) - 1, &f, NULL, NULL));
    const struct dockerfile_health *h = &f.stages[0].steps[0].health;
    CHECK(h->interval_ns == INT64_C(90000000000));
    CHECK(h->timeout_ns == INT64_C(500000000));
    CHECK(h->start_period_ns == INT64_C(1500000000));
    CHECK_EQ(h->retries, 4);
    dockerfile_done(&f);
}

TEST(steps_know_their_lines_and_text)
{
    static const char text[] = "# x\nFROM a\n\nRUN b \\\n  c\nCOPY <<E /x\n1\n2\nE\nRUN d";
    struct dockerfile f;
    CHECK_OK(dockerfile_parse(text, sizeof(text) - 1, &f, NULL, NULL));
    const struct dockerfile_stage *s = &f.stages[0];
    CHECK_EQ(s->from->line, 2);
    CHECK_EQ(s->steps[0].line, 4);
    CHECK_STR(s->steps[0].text, "RUN b   c");
    CHECK_EQ(s->steps[1].line, 6);
    CHECK_EQ(s->steps[2].line, 10);
    dockerfile_done(&f);
}

TEST(what_is_odd_but_works_is_a_warning)
{
    static const char text[] = "FROM a\nMAINTAINER b\nRUN c \\\n\n d";
    struct dockerfile f;
    CHECK_OK(dockerfile_parse(text, sizeof(text) - 1, &f, NULL, NULL));
    CHECK_EQ(f.n_warnings, 2);
    CHECK_EQ(f.warnings[0].line, 2);
    CHECK_EQ(f.warnings[1].line, 3);
    dockerfile_done(&f);
}

TEST(a_large_file_is_bounded)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(4 << 20);
    struct dockerfile f;
    CHECK_OK(buf_puts(&text, "FROM a\n"));
    for (int i = 0; i < DOCKERFILE_STEPS_MAX; i++)
        CHECK_OK(buf_puts(&text, "RUN x\n"));
    CHECK_EQ(dockerfile_parse(text.data, text.len, &f, NULL, NULL), -EINVAL);
    buf_clear(&text);
    CHECK_OK(buf_puts(&text, "FROM a\nEXPOSE"));
    for (int i = 0; i <= DOCKERFILE_WORDS_MAX; i++)
        CHECK_OK(buf_puts(&text, " 1"));
    CHECK_EQ(dockerfile_parse(text.data, text.len, &f, NULL, NULL), -EINVAL);
    while (text.len <= DOCKERFILE_MAX)
        CHECK_OK(buf_puts(&text, "                                                      "));
    CHECK_EQ(dockerfile_parse(text.data, text.len, &f, NULL, NULL), -EINVAL);
}
