#include "front/rpc/pbjson.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "filesystem.pb-c.h"
#include "process.pb-c.h"

static char *written(const ProtobufCMessage *m)
{
    struct buf b = BUF_INIT(4096);
    struct jout j = JOUT_INIT(&b);
    pbjson_write(&j, NULL, m);
    CHECK_OK(jout_done(&j));
    return buf_steal(&b);
}

/* Read as `d`, then written again. */
static void check_round(const ProtobufCMessageDescriptor *d, const char *in, const char *out)
{
    ProtobufCMessage *m = NULL;
    struct err err = ERR_INIT;
    CHECK_OK(pbjson_read(in, strlen(in), d, &m, &err));
    _cleanup_free_ char *text = written(m);
    CHECK_STR(text, out);
    protobuf_c_message_free_unpacked(m, NULL);
}

TEST(messages_come_back_as_they_were_read)
{
    const ProtobufCMessageDescriptor *start = &process__start_request__descriptor;
    check_round(start, "", "{}");
    check_round(start, "{}", "{}");
    check_round(start,
                "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"x\"],\"envs\":{\"A\":\"1\"},"
                "\"cwd\":\"/tmp\"},\"stdin\":false}",
                "{\"process\":{\"cmd\":\"/bin/sh\",\"args\":[\"-c\",\"x\"],\"envs\":{\"A\":\"1\"},"
                "\"cwd\":\"/tmp\"},\"stdin\":false}");
    check_round(start, "{\"unknown\":[1,{}],\"tag\":null,\"pty\":{\"size\":{\"cols\":\"80\"}}}",
                "{\"pty\":{\"size\":{\"cols\":80}}}");
    check_round(&process__send_signal_request__descriptor,
                "{\"signal\":\"SIGNAL_SIGKILL\",\"process\":{\"pid\":0}}",
                "{\"process\":{\"pid\":0},\"signal\":\"SIGNAL_SIGKILL\"}");
    check_round(&process__process_input__descriptor, "{\"stdin\":\"aGk=\"}",
                "{\"stdin\":\"aGk=\"}");
    check_round(&filesystem__watch_dir_request__descriptor,
                "{\"path\":\"/\",\"include_entry\":true}",
                "{\"path\":\"/\",\"includeEntry\":true}");
    check_round(&filesystem__entry_info__descriptor,
                "{\"size\":\"9007199254740993\",\"type\":1,"
                "\"modifiedTime\":\"2026-01-31T12:04:05.123Z\"}",
                "{\"type\":\"FILE_TYPE_FILE\",\"size\":\"9007199254740993\","
                "\"modifiedTime\":\"2026-01-31T12:04:05.123000000Z\"}");
}

TEST(what_does_not_fit_is_refused)
{
    static const struct {
        const ProtobufCMessageDescriptor *d;
        const char *text;
    } cases[] = {
        { &process__start_request__descriptor, "[]" },
        { &process__start_request__descriptor, "{" },
        { &process__start_request__descriptor, "{\"process\":1}" },
        { &process__start_request__descriptor, "{\"process\":{\"args\":\"x\"}}" },
        { &process__start_request__descriptor, "{\"process\":{\"args\":[\"x\",1]}}" },
        { &process__start_request__descriptor, "{\"process\":{\"envs\":{\"A\":\"1\",\"B\":2}}}" },
        { &process__start_request__descriptor, "{\"stdin\":\"true\"}" },
        { &process__process_selector__descriptor, "{\"pid\":-1}" },
        { &process__process_selector__descriptor, "{\"pid\":4294967296}" },
        { &process__process_selector__descriptor, "{\"pid\":1,\"tag\":\"x\"}" },
        { &process__process_input__descriptor, "{\"stdin\":\"not base64!\"}" },
        { &process__send_signal_request__descriptor, "{\"signal\":\"SIGNAL_NONE\"}" },
        { &filesystem__entry_info__descriptor, "{\"modifiedTime\":\"yesterday\"}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ProtobufCMessage *m = NULL;
        struct err err = ERR_INIT;
        CHECK_EQ(pbjson_read(cases[i].text, strlen(cases[i].text), cases[i].d, &m, &err), -EINVAL);
        CHECK(err.msg[0] != '\0');
    }
}
