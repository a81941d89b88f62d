/* Runs of one request and one answer, nothing streamed: with --json, and those that are left. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/object.h"
#include "cli/session.h"

#define STDIN_MAX (8u << 20) /* as much as the answer keeps of each stream */

static int read_all(int fd, struct buf *out, struct err *err)
{
    for (;;) {
        if (buf_reserve(out, 64 * 1024) < 0)
            return err_set(err, EMSGSIZE, "with --json, standard input is limited to %u MiB",
                           STDIN_MAX >> 20);
        ssize_t n = read(fd, out->data + out->len, 64 * 1024);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, errno, "cannot read standard input");
        if (n == 0)
            return 0;
        out->len += (size_t)n;
    }
}

/* What a run that did not begin ends with; it is said, too. */
static int refused(const struct cli *cli, const struct err *err, const char *code)
{
    int status = cli_fail(cli, err);
    if (strcmp(code, "program_not_found") == 0)
        return STATUS_NOT_FOUND;
    return strcmp(code, "program_not_executable") == 0 ? STATUS_NOT_EXECUTABLE : status;
}

int session_start(struct cli *cli, const char *sandbox, json_t *taken, json_t **ret_process)
{
    _cleanup_json_ json_t *spec = taken;
    _cleanup_free_ char *path = api_path("sandboxes", sandbox, "processes", NULL);
    struct err err = ERR_INIT;
    char code[REQUEST_CODE_MAX] = "";
    if (cli_call_code(cli, "POST", path, spec, ret_process, code, &err) < 0)
        return refused(cli, &err, code);
    return 0;
}

int session_run_json(struct cli *cli, const char *sandbox, bool input, json_t *taken)
{
    _cleanup_json_ json_t *spec = taken;
    _cleanup_(buf_done) struct buf in = BUF_INIT(STDIN_MAX + 64 * 1024);
    _cleanup_free_ char *path = api_path("sandboxes", sandbox, "exec", NULL);
    _cleanup_free_ char *text = NULL;
    struct err err = ERR_INIT;
    struct client *client = cli_client(cli, &err);
    if (!client)
        return cli_fail(cli, &err);
    if (input) {
        if (read_all(STDIN_FILENO, &in, &err) < 0)
            return cli_fail(cli, &err);
        if (in.len > 0 && json_object_set_new(spec, "stdin", json_stringn(in.data, in.len)) < 0) {
            (void)err_set(&err, EILSEQ, "with --json, standard input must be UTF-8 text");
            return cli_fail(cli, &err);
        }
    }
    text = json_dumps(spec, JSON_COMPACT);
    _cleanup_(request_done) struct request call = { .method = "POST",
                                                    .path = path,
                                                    .body = text,
                                                    .body_len = text ? strlen(text) : 0,
                                                    .body_type = "application/json",
                                                    .timeout_s = -1 };
    if (client_perform(client, &call, &err) < 0)
        return refused(cli, &err, call.code);
    cli_print_json(call.json);
    return (int)member_int(call.json, "exit_code") & 0xff;
}
