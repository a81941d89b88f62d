/* StreamInput: a process is fed from a body of many messages, each written as it arrives.
 *
 * The protocol answers such a call with 200 and tells of failures at the end, so what goes wrong
 * while the body comes is kept, the rest of the body is let pass, and the answer says it. */
#include <errno.h>
#include <string.h>

#include "front/e2b/process.h"
#include "front/rpc/envelope.h"

struct input {
    struct envd envd;
    struct connect_call call;
    struct envelopes envelopes;
    uint64_t proc; /* 0: not named yet */
    bool pty, ended, failed;
    struct err err;
};

static void input_free(void *arg)
{
    struct input *in = arg;
    envelopes_done(&in->envelopes);
    envd_leave(&in->envd);
    free(in);
}

static int take(struct input *in, const Process__StreamInputRequest *m, struct err *err)
{
    const ProtobufCBinaryData *b;
    switch (m->event_case) {
    case PROCESS__STREAM_INPUT_REQUEST__EVENT_START:
        if (in->proc)
            return err_fail(err, FAIL_INVALID_REQUEST, "a process is named already");
        return envd_select_process(&in->envd, m->start->process, &in->proc, &in->pty, err);
    case PROCESS__STREAM_INPUT_REQUEST__EVENT_DATA: {
        if (!in->proc)
            return err_fail(err, FAIL_INVALID_REQUEST, "the first message must name the process");
        int r = envd_input_bytes(m->data->input, in->pty, &b, err);
        return r < 0 ? r
                     : process_write(in->envd.core, &in->envd.s, in->proc, b->data, b->len, err);
    }
    case PROCESS__STREAM_INPUT_REQUEST__EVENT_KEEPALIVE: return 0;
    case PROCESS__STREAM_INPUT_REQUEST__EVENT__NOT_SET:
    case _PROCESS__STREAM_INPUT_REQUEST__EVENT__CASE_IS_INT_SIZE: break;
    }
    return err_fail(err, FAIL_MISSING_FIELD, "a message has no event");
}

static int on_message(void *arg, unsigned flags, const char *p, size_t n)
{
    struct input *in = arg;
    ProtobufCMessage *m = NULL;
    if (flags & ENVELOPE_END || in->ended) {
        in->ended = true;
        return 0;
    }
    if (flags)
        return err_fail(&in->err, FAIL_INVALID_REQUEST, "a message is compressed");
    int r = connect_decode(in->call.json, p, n, &process__stream_input_request__descriptor, &m,
                           &in->err);
    if (r < 0)
        return r;
    r = take(in, (const Process__StreamInputRequest *)m, &in->err);
    protobuf_c_message_free_unpacked(m, NULL);
    return r;
}

static int sink_begin(struct request *req, struct err *err)
{
    struct input *in = calloc(1, sizeof(*in));
    if (!in)
        return err_set(err, ENOMEM, "cannot allocate a stream");
    in->envelopes = (struct envelopes)ENVELOPES_INIT;
    int r = envd_enter(req, &in->envd, err);
    if (r >= 0)
        r = connect_begin_stream(req, &in->call, err);
    if (r < 0) {
        input_free(in);
        return r;
    }
    req->sink = in;
    return 0;
}

static int sink_write(struct request *req, const char *p, size_t n, struct err *err)
{
    struct input *in = req->sink;
    if (in->failed)
        return 0;
    int r = envelopes_feed(&in->envelopes, p, n, on_message, in);
    in->failed = r < 0;
    if (r < 0 && !in->err.failure && !in->err.msg[0])
        (void)err_fail(&in->err, FAIL_INVALID_REQUEST, "a message is too long");
    return 0;
}

static void sink_end(struct request *req)
{
    if (req->sink)
        input_free(req->sink);
    req->sink = NULL;
}

const struct route_sink envd_input_sink = { sink_begin, sink_write, sink_end, NULL };

/* ---- the answer: one empty message, and the end ---- */

struct answer {
    bool json, told;
};

static int answer_next(void *arg, struct buf *out)
{
    static const Process__StreamInputResponse none = PROCESS__STREAM_INPUT_RESPONSE__INIT;
    struct answer *a = arg;
    if (a->told)
        return 0;
    a->told = true;
    int r = connect_put(out, a->json, &none.base);
    if (r >= 0)
        r = connect_put_end(out, RPC_OK, NULL);
    return r < 0 ? r : 1;
}

int envd_process_stream_input(struct request *req, struct err *err)
{
    static const struct reply_source source = { answer_next, free };
    struct input *in = req->sink;
    if (!in->failed && envelopes_end(&in->envelopes) < 0) {
        in->failed = true;
        (void)err_fail(&in->err, FAIL_INVALID_REQUEST, "the body ends in a message");
    }
    if (!in->failed && !in->proc) {
        in->failed = true;
        (void)err_fail(&in->err, FAIL_MISSING_FIELD, "no message names the process");
    }
    if (in->failed)
        return envd_fail(&in->envd, &in->call, &in->err);
    struct answer *a = calloc(1, sizeof(*a));
    if (!a)
        return err_set(err, ENOMEM, "cannot allocate an answer");
    a->json = in->call.json;
    return reply_stream(req, connect_stream_type(a->json), &source, a);
}
