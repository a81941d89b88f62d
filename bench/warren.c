#include "warren.h"

#include <errno.h>

#include "sample.h"

#define PATH_SIZE 96
#define OUTPUT_MARK "\"ready\\n\"" /* how the line looks inside JSON, streamed or not */
#define ANSWER_SHOWN 160           /* bytes of an unexpected answer that a message quotes */

static int ask(struct http *h, const char *method, const char *path, const char *body,
               const char *mark, int status, struct http_answer *ret, struct err *err)
{
    int r = http_ask(h, method, path, body, mark, ret, err);

    if (r < 0)
        return r;
    if (ret->status != status)
        return err_set(err, EPROTO, "%s %s answered %d: %.*s", method, path, ret->status,
                       ANSWER_SHOWN, ret->body);
    return 0;
}

int warren_create(struct http *h, char ret_id[ID_SIZE], struct err *err)
{
    struct http_answer a;
    const char *p;
    int r = ask(h, "POST", "/v1/sandboxes", "{}", NULL, 201, &a, err);

    if (r < 0)
        return r;
    p = strstr(a.body, "\"id\"");
    if (!p || sscanf(p + 4, " : \"%20[a-z0-9]\"", ret_id) != 1)
        return err_set(err, EPROTO, "create answered without an id: %.*s", ANSWER_SHOWN, a.body);
    return 0;
}

int warren_delete(struct http *h, const char *id, struct err *err)
{
    char path[PATH_SIZE];
    struct http_answer a;

    (void)snprintf(path, sizeof(path), "/v1/sandboxes/%s", id);
    return ask(h, "DELETE", path, NULL, NULL, 204, &a, err);
}

static int exec_in(struct http *h, const char *id, const char *body, const char *mark,
                   struct http_answer *ret, struct err *err)
{
    char path[PATH_SIZE];

    (void)snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
    return ask(h, "POST", path, body, mark, 200, ret, err);
}

int warren_echo(struct http *h, const char *id, bool stream, double *ret_us, struct err *err)
{
    struct http_answer a;
    int r = exec_in(h, id, "{\"argv\":[\"/bin/echo\",\"ready\"]}", stream ? OUTPUT_MARK : NULL, &a,
                    err);
    double end = now_us();

    if (r < 0)
        return r;
    if (!strstr(a.body, OUTPUT_MARK))
        return err_set(err, EPROTO, "echo printed something else: %.*s", ANSWER_SHOWN, a.body);
    *ret_us = stream ? a.mark_us : end;
    return 0;
}

int warren_true(struct http *h, const char *id, struct err *err)
{
    struct http_answer a;
    const char *p;
    int code, r = exec_in(h, id, "{\"argv\":[\"/bin/true\"]}", NULL, &a, err);

    if (r < 0)
        return r;
    p = strstr(a.body, "\"exit_code\"");
    if (!p || sscanf(p + 11, " : %d", &code) != 1 || code != 0)
        return err_set(err, EPROTO, "true did not exit with 0: %.*s", ANSWER_SHOWN, a.body);
    return 0;
}

int warren_once(struct http *h, bool stream, double *ret_us, struct err *err)
{
    char id[ID_SIZE] = "";
    double start = now_us(), end = 0;
    int r = warren_create(h, id, err), gone;

    if (r < 0)
        return r;
    r = warren_echo(h, id, stream, &end, err);
    gone = warren_delete(h, id, r < 0 ? NULL : err);
    if (r < 0 || gone < 0)
        return r < 0 ? r : gone;
    *ret_us = end - start;
    return 0;
}

int warren_pool_ready(struct http *h, struct err *err)
{
    struct http_answer a;
    int n, r = ask(h, "GET", "/metrics", NULL, NULL, 200, &a, err);

    if (r < 0)
        return r;
    for (const char *p = a.body; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (sscanf(p, "warren_pool_ready %d", &n) == 1)
            return n;
    }
    return -ENOENT;
}
