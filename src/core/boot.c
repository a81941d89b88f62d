#include "core/boot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MAX 1024
#define ARGS_BYTES_MAX (128 * 1024)
#define PATH_MAX_LEN 1024

static void argv_free(char **argv)
{
    for (char **a = argv; a && *a; a++)
        free(*a);
    free(argv);
}

static size_t argv_count(char *const *argv)
{
    size_t n = 0;
    while (argv && argv[n])
        n++;
    return n;
}

static int argv_copy(char *const *from, char ***ret_to)
{
    size_t n = argv_count(from);
    if (!from)
        return 0;
    char **to = calloc(n + 1, sizeof(*to));
    for (size_t i = 0; to && i < n; i++)
        if (!(to[i] = strdup(from[i]))) {
            argv_free(to);
            to = NULL;
        }
    *ret_to = to;
    return to ? 0 : -ENOMEM;
}

int boot_copy(const struct boot *from, struct boot *ret_to)
{
    struct boot to = *from;
    to.argv = to.ready_argv = NULL;
    to.path = NULL;
    int r = argv_copy(from->argv, &to.argv);
    if (r >= 0)
        r = argv_copy(from->ready_argv, &to.ready_argv);
    if (r >= 0 && from->path && !(to.path = strdup(from->path)))
        r = -ENOMEM;
    if (r < 0) {
        boot_done(&to);
        return r;
    }
    *ret_to = to;
    return 0;
}

void boot_done(struct boot *b)
{
    argv_free(b->argv);
    argv_free(b->ready_argv);
    free(b->path);
    *b = (struct boot){ 0 };
}

bool boot_any(const struct boot *b)
{
    return b->argv || b->ready != READY_AT_ONCE;
}

static int check_argv(char *const *argv, const char *member, struct err *err)
{
    size_t n = argv_count(argv), bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(argv[i]);
    if (argv && (n == 0 || argv[0][0] == '\0' || n > ARGS_MAX || bytes > ARGS_BYTES_MAX))
        return err_fail(err, FAIL_INVALID_FIELD,
                        "'%s' must be 1 to %d words of %d bytes in all, the first not empty",
                        member, ARGS_MAX, ARGS_BYTES_MAX);
    return 0;
}

static int check_path(const char *path, struct err *err)
{
    bool good = path && path[0] == '/' && strlen(path) <= PATH_MAX_LEN;
    for (const char *p = path; good && *p; p++)
        good = *p > ' ' && *p < 0x7f; /* it goes into a request line */
    return good ? 0
                : err_fail(err, FAIL_INVALID_FIELD,
                           "'path' must begin with '/' and be printable, %d bytes at most",
                           PATH_MAX_LEN);
}

int boot_check(const struct boot *b, struct err *err)
{
    int r = check_argv(b->argv, "start_command", err);
    if (r >= 0)
        r = check_argv(b->ready_argv, "command", err);
    if (r >= 0 && (b->ready == READY_PORT || b->ready == READY_HTTP) &&
        (b->port < 1 || b->port > 65535))
        r = err_fail(err, FAIL_INVALID_FIELD, "'port' must be from 1 to 65535");
    if (r >= 0 && b->ready == READY_HTTP)
        r = check_path(b->path, err);
    if (r >= 0 && b->ready == READY_HTTP && (b->status < 100 || b->status > 599))
        r = err_fail(err, FAIL_INVALID_FIELD, "'status' must be from 100 to 599");
    if (r >= 0 && (b->timeout_ms < 0 || b->timeout_ms > BOOT_TIMEOUT_MAX_S * 1000ll))
        r = err_fail(err, FAIL_INVALID_FIELD, "'ready_timeout_s' must be from 0 to %d",
                     BOOT_TIMEOUT_MAX_S);
    return r;
}

/* ---- the form at rest ---- */

static json_t *argv_to_json(char *const *argv)
{
    if (!argv)
        return json_null();
    json_t *list = json_array();
    for (; list && *argv; argv++)
        if (json_array_append_new(list, json_string(*argv)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int argv_from_json(const json_t *list, char ***ret_argv)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return 0;
    char **argv = calloc(n + 1, sizeof(*argv));
    for (size_t i = 0; argv && i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (!(argv[i] = strdup(text ? text : ""))) {
            argv_free(argv);
            argv = NULL;
        }
    }
    *ret_argv = argv;
    return argv ? 0 : -ENOMEM;
}

json_t *boot_to_json(const struct boot *b)
{
    return json_pack("{s:o, s:i, s:o, s:i, s:s?, s:i, s:I}", "argv", argv_to_json(b->argv), "ready",
                     (int)b->ready, "ready_argv", argv_to_json(b->ready_argv), "port", (int)b->port,
                     "path", b->path, "status", (int)b->status, "timeout_ms",
                     (json_int_t)b->timeout_ms);
}

int boot_from_json(const json_t *o, struct boot *ret_b)
{
    struct boot b = { .port = (uint32_t)json_integer_value(json_object_get(o, "port")),
                      .status = (uint32_t)json_integer_value(json_object_get(o, "status")),
                      .timeout_ms = json_integer_value(json_object_get(o, "timeout_ms")) };
    json_int_t kind = json_integer_value(json_object_get(o, "ready"));
    const char *path = json_string_value(json_object_get(o, "path"));
    b.ready = kind >= READY_AT_ONCE && kind <= READY_HTTP ? (enum ready_kind)kind : READY_AT_ONCE;
    int r = argv_from_json(json_object_get(o, "argv"), &b.argv);
    if (r >= 0)
        r = argv_from_json(json_object_get(o, "ready_argv"), &b.ready_argv);
    if (r >= 0 && path && !(b.path = strdup(path)))
        r = -ENOMEM;
    if (r < 0) {
        boot_done(&b);
        return r;
    }
    *ret_b = b;
    return 0;
}
