#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/build_private.h"

#define PORTS_MAX 1024 /* of one EXPOSE */

static int no_memory(struct err *err)
{
    return err_set(err, ENOMEM, "cannot keep the image's configuration");
}

static int bad(const struct dockerfile_step *step, struct err *err, const char *what,
               const char *word)
{
    return err_fail(err, FAIL_INVALID_DOCKERFILE, "line %u: '%.100s' is not %s", step->line, word,
                    what);
}

/* ---- lists that end with a NULL ---- */

static char *const no_list[] = { NULL };

static size_t list_len(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static int list_add(char ***list, const char *text)
{
    size_t n = list_len(*list);
    for (size_t i = 0; i < n; i++)
        if (strcmp((*list)[i], text) == 0)
            return 0;
    char **more = reallocarray(*list, n + 2, sizeof(*more));
    if (!more)
        return -ENOMEM;
    *list = more;
    more[n + 1] = NULL;
    more[n] = strdup(text);
    return more[n] ? 0 : -ENOMEM;
}

static int list_set(char ***list, char *const *before, const char *const *words, size_t n)
{
    size_t k = list_len(before);
    char **all = calloc(k + n + 1, sizeof(*all));
    int r = all ? 0 : -ENOMEM;
    for (size_t i = 0; i < k + n && r >= 0; i++) {
        all[i] = strdup(i < k ? before[i] : words[i - k]);
        r = all[i] ? 0 : -ENOMEM;
    }
    if (r < 0) {
        strings_free(all);
        return r;
    }
    strings_free(*list);
    *list = all;
    return 0;
}

int build_argv(const struct build_stage *st, const struct dockerfile_step *step, char ***list)
{
    static char sh[] = "/bin/sh", c[] = "-c";
    static char *const usual[] = { sh, c, NULL };
    char *const *shell = st->config.shell && st->config.shell[0] ? st->config.shell : usual;
    return list_set(list, step->json ? no_list : shell, step->words, step->n_words);
}

/* ---- EXPOSE ---- */

static int port_number(const char **p, unsigned *ret_port)
{
    unsigned long n = 0;
    if (!isdigit((unsigned char)**p))
        return -EINVAL;
    for (; isdigit((unsigned char)**p) && n <= 65535; (*p)++)
        n = n * 10 + (unsigned)(**p - '0');
    if (n < 1 || n > 65535)
        return -EINVAL;
    *ret_port = (unsigned)n;
    return 0;
}

/* "80", "80/udp", "8000-8010/tcp" */
static int expose(struct image_config *c, const char *word)
{
    unsigned first, last;
    const char *p = word;
    int r = port_number(&p, &first);
    last = first;
    if (r >= 0 && *p == '-') {
        p++;
        r = port_number(&p, &last);
    }
    if (r < 0 || last < first || last - first >= PORTS_MAX)
        return -EINVAL;
    const char *protocol = *p == '/' ? p + 1 : *p ? "" : "tcp";
    if (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0 &&
        strcmp(protocol, "sctp") != 0)
        return -EINVAL;
    for (unsigned port = first; port <= last && r >= 0; port++) {
        char text[24];
        (void)snprintf(text, sizeof(text), "%u/%s", port, protocol);
        r = list_add(&c->ports, text);
    }
    return r;
}

static int expose_all(struct build_stage *st, const struct dockerfile_step *step, struct err *err)
{
    for (size_t i = 0; i < step->n_words; i++) {
        int r = expose(&st->config, step->words[i]);
        if (r < 0)
            return r == -EINVAL ? bad(step, err, "a port such as 80 or 53/udp", step->words[i])
                                : no_memory(err);
    }
    return 0;
}

/* ---- the others ---- */

static int set_text(char **at, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*at);
    *at = copy;
    return 0;
}

static int declare(struct build_stage *st, const struct dockerfile_step *step, struct err *err)
{
    int r = 0;
    for (size_t i = 0; i < step->n_pairs && r >= 0; i++) {
        const struct dockerfile_pair *p = &step->pairs[i];
        switch (step->kind) {
        case DOCKERFILE_ARG: r = scope_declare(&st->scope, p->name, p->value); break;
        case DOCKERFILE_ENV: r = vars_set(&st->scope.env, p->name, p->value); break;
        default: r = pairs_add(&st->config.labels, p->name, p->value); break;
        }
    }
    if (r == -E2BIG)
        return err_fail_as(err, E2BIG, FAIL_INVALID_DOCKERFILE, "line %u: over %d variables",
                           step->line, SCOPE_VARS_MAX);
    return r < 0 ? no_memory(err) : 0;
}

static int set_health(struct build_stage *st, const struct dockerfile_step *step)
{
    const struct dockerfile_health *h = &step->health;
    const struct {
        const char *name;
        int64_t v;
    } numbers[] = { { "Interval", h->interval_ns },
                    { "Timeout", h->timeout_ns },
                    { "StartPeriod", h->start_period_ns },
                    { "StartInterval", h->start_interval_ns },
                    { "Retries", h->retries } };
    json_t *o = json_object(), *test = json_array();
    int r = json_array_append_new(test, json_string(h->none      ? "NONE"
                                                    : step->json ? "CMD"
                                                                 : "CMD-SHELL"));
    for (size_t i = 0; i < step->n_words && r == 0; i++)
        r = json_array_append_new(test, json_string(step->words[i]));
    for (size_t i = 0; i < ARRAY_LEN(numbers) && r == 0; i++)
        if (numbers[i].v)
            r = json_object_set_new(o, numbers[i].name, json_integer(numbers[i].v));
    if (r == 0)
        r = json_object_set(o, "Test", test);
    json_decref(test);
    if (r != 0) {
        json_decref(o);
        return -ENOMEM;
    }
    json_decref(st->health);
    st->health = o;
    return 0;
}

static int set_command(struct build_stage *st, const struct dockerfile_step *step)
{
    if (step->kind == DOCKERFILE_CMD) {
        st->cmd_set = true;
        return build_argv(st, step, &st->config.cmd);
    }
    int r = build_argv(st, step, &st->config.entrypoint);
    if (r >= 0 && !st->cmd_set) { /* the base's was meant for the base's */
        strings_free(st->config.cmd);
        st->config.cmd = NULL;
    }
    return r;
}

static int change(struct build_stage *st, const struct dockerfile_step *step, struct err *err)
{
    int signo, r = 0;
    switch (step->kind) {
    case DOCKERFILE_ARG:
    case DOCKERFILE_ENV:
    case DOCKERFILE_LABEL: return declare(st, step, err);
    case DOCKERFILE_EXPOSE: return expose_all(st, step, err);
    case DOCKERFILE_USER: r = set_text(&st->config.user, step->words[0]); break;
    case DOCKERFILE_STOPSIGNAL:
        if (process_signal_parse(step->words[0], &signo) < 0 &&
            strncmp(step->words[0], "SIGRT", 5) != 0)
            return bad(step, err, "a signal", step->words[0]);
        r = set_text(&st->config.stop_signal, step->words[0]);
        break;
    case DOCKERFILE_VOLUME:
        for (size_t i = 0; i < step->n_words && r >= 0; i++)
            r = list_add(&st->config.volumes, step->words[i]);
        break;
    case DOCKERFILE_SHELL:
        r = list_set(&st->config.shell, no_list, step->words, step->n_words);
        break;
    case DOCKERFILE_CMD:
    case DOCKERFILE_ENTRYPOINT: r = set_command(st, step); break;
    case DOCKERFILE_HEALTHCHECK: r = set_health(st, step); break;
    case DOCKERFILE_MAINTAINER: r = set_text(&st->author, step->words[0]); break;
    case DOCKERFILE_FROM:
    case DOCKERFILE_RUN:
    case DOCKERFILE_COPY:
    case DOCKERFILE_ADD:
    case DOCKERFILE_WORKDIR: break; /* not here */
    }
    return r < 0 ? no_memory(err) : 0;
}

int build_configure(struct build *b, struct build_stage *st, const struct dockerfile_step *step,
                    struct err *err)
{
    int r = change(st, step, err);
    return r < 0 ? r : build_record(st, NULL, step->text, 0, err);
}

int build_env(const struct build_stage *st, bool args, struct pairs *ret_env)
{
    struct pairs env = { 0 };
    int r = 0;
    for (size_t i = 0; i < st->scope.env.n && r >= 0; i++)
        r = pairs_add(&env, st->scope.env.names[i], st->scope.env.values[i]);
    for (size_t i = 0; args && i < st->scope.args.n && r >= 0; i++)
        if (st->scope.args.values[i] && !vars_has(&st->scope.env, st->scope.args.names[i]))
            r = pairs_add(&env, st->scope.args.names[i], st->scope.args.values[i]);
    if (r < 0) {
        pairs_done(&env);
        return r;
    }
    *ret_env = env;
    return 0;
}
