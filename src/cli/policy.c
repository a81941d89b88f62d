#include "cli/policy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/units.h"

#define WORD_MAX 64
#define COUNT_MAX 1000

static int bad(struct err *err, const char *word)
{
    return err_set(err, EINVAL,
                   "--checkpoints: '%s' is none of every=TIME, command, stop, last=N, for=TIME, "
                   "hourly=N, daily=N",
                   word);
}

static int put_time(json_t *o, const char *name, const char *text)
{
    int64_t ms;
    if (duration_parse(text, &ms) < 0 || ms <= 0)
        return -EINVAL;
    return json_object_set_new(o, name, json_real((double)ms / 1000));
}

static int put_count(json_t *o, const char *name, const char *text)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < 1 || n > COUNT_MAX)
        return -EINVAL;
    return json_object_set_new(o, name, json_integer(n));
}

static int put_word(json_t *policy, json_t *keep, const char *word)
{
    static const struct {
        const char *word, *member;
        int (*put)(json_t *o, const char *name, const char *text);
        bool keeps;
    } words[] = {
        { "every=", "every_s", put_time, false }, { "last=", "last", put_count, true },
        { "for=", "for_s", put_time, true },      { "hourly=", "hourly", put_count, true },
        { "daily=", "daily", put_count, true },
    };
    if (strcmp(word, "command") == 0)
        return json_object_set_new(policy, "before_each_command", json_true());
    if (strcmp(word, "stop") == 0)
        return json_object_set_new(policy, "on_stop", json_true());
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t n = strlen(words[i].word);
        if (strncmp(word, words[i].word, n) == 0)
            return words[i].put(words[i].keeps ? keep : policy, words[i].member, word + n);
    }
    return -EINVAL;
}

int policy_put(json_t *body, const char *text, struct err *err)
{
    json_t *policy = json_object(), *keep = json_object();
    if (strcmp(text, "none") == 0) {
        json_decref(policy);
        json_decref(keep);
        return json_object_set_new(body, "checkpoints", json_null());
    }
    (void)json_object_set_new(body, "checkpoints", policy);
    (void)json_object_set_new(policy, "keep", keep);
    while (*text) {
        char word[WORD_MAX];
        size_t n = strcspn(text, ",");
        if (snprintf(word, sizeof(word), "%.*s", (int)n, text) >= (int)sizeof(word) ||
            put_word(policy, keep, word) < 0)
            return bad(err, word);
        text += n;
        text += *text == ',';
    }
    if (json_object_size(keep) == 0)
        (void)json_object_del(policy, "keep");
    return 0;
}
