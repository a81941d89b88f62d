/* envd - the side of a sandbox that E2B's SDKs talk to: commands and files.
 *
 * A request names its sandbox in headers and proves itself with the sandbox's own token, not with
 * an API key. One that is not there, or not running, is answered with 502 as the SDKs know it. */
#pragma once
#include "core/process.h"
#include "core/sandbox.h"
#include "front/http/request.h"
#include "front/rpc/connect.h"

#define ENVD_VERSION "0.6.13" /* what the SDKs decide by which features there are */
#define ENVD_PORT 49983
#define ENVD_TOKEN "e2b-envd"
#define ENVD_USER_MAX 64

struct envd {
    struct core *core; /* NULL: not entered */
    struct sandbox s;
    char user[ENVD_USER_MAX]; /* "": the sandbox's own */
    struct file_call *birth;  /* its first files, on their way; NULL: none */
};

/* Enter the sandbox that the caller was let into (req->subject). One that is paused is resumed, if its owner wants
 * that. -ENOTCONN: it is not there or does not run, which the dialect answers with 502 (envd_gone). */
int envd_enter(struct request *req, struct envd *ret_envd, struct err *err);
void envd_leave(struct envd *envd);

/* Enter and read the request's message: 0 and entered; 1: it was not understood, which is replied
 * to already; below zero as of envd_enter. */
int envd_begin(struct request *req, const ProtobufCMessageDescriptor *d, bool stream,
               struct envd *ret_envd, struct connect_call *ret_call, struct err *err);
/* A failure of core's as this call's answer; a sandbox that is gone as 502. */
int envd_fail(const struct envd *envd, const struct connect_call *call, const struct err *err);
int envd_gone(struct request *req, const char *id);
/* The silence after which a stream tells that it lives, as its client wants it. */
int envd_keepalive_ms(struct request *req);

/* How long the client lets this call take; 0: as long as it takes. */
int envd_timeout_ms(struct request *req, int64_t *ret_ms, struct err *err);
/* What every command finds in its environment, below what the sandbox and the call have. */
int envd_put_env(const struct sandbox *s, struct pairs *env);
/* All that it has, as an object. */
int envd_tell_env(const struct sandbox *s, struct jout *j);

int envd_process_start(struct request *req, struct err *err);
int envd_process_connect(struct request *req, struct err *err);
int envd_process_list(struct request *req, struct err *err);
int envd_process_update(struct request *req, struct err *err);
int envd_process_input(struct request *req, struct err *err);
int envd_process_close_stdin(struct request *req, struct err *err);
int envd_process_signal(struct request *req, struct err *err);
int envd_process_stream_input(struct request *req, struct err *err);
extern const struct route_sink envd_input_sink;

int envd_fs_stat(struct request *req, struct err *err);
int envd_fs_make_dir(struct request *req, struct err *err);
int envd_fs_move(struct request *req, struct err *err);
int envd_fs_remove(struct request *req, struct err *err);
int envd_fs_list_dir(struct request *req, struct err *err);
int envd_fs_watch_dir(struct request *req, struct err *err);
int envd_fs_create_watcher(struct request *req, struct err *err);
int envd_fs_get_watcher_events(struct request *req, struct err *err);
int envd_fs_remove_watcher(struct request *req, struct err *err);

int envd_envs(struct request *req, struct err *err);
int envd_metrics(struct request *req, struct err *err);

int envd_files_compose(struct request *req, struct err *err);
int envd_files_get(struct request *req, struct err *err);
int envd_files_post(struct request *req, struct err *err);
extern const struct route_sink envd_files_sink;
