/* process - what the calls on a sandbox's commands share. Private to process*.c. */
#pragma once
#include "front/e2b/envd.h"
#include "process.pb-c.h"

/* The process that is meant, and whether it has a terminal. */
int envd_select_process(const struct envd *envd, const Process__ProcessSelector *s,
                        uint64_t *ret_proc, bool *ret_pty, struct err *err);
/* Input of the right kind for it; borrowed from `input`. */
int envd_input_bytes(const Process__ProcessInput *input, bool pty,
                     const ProtobufCBinaryData **ret_bytes, struct err *err);
/* What a watched process did, as its clients expect it, for at most timeout_ms (0: to its end).
 * Takes the call, the envd and the stream, also on failure. */
int envd_stream_process(struct connect_call *call, struct envd *envd, struct process_stream *stream,
                        const struct process *p, int64_t timeout_ms);
