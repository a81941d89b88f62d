/** What goes wrong. `code` is the API's stable word for it; the text is for people. */
import type { Result } from "./models.js";

export class WarrenError extends Error {
  readonly code: string;
  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options as ErrorOptions);
    this.code = code;
    this.name = new.target.name;
  }
}

/** The daemon could not be reached, or the connection broke before its answer. */
export class ConnectionFailed extends WarrenError {
  constructor(message: string, cause?: unknown) {
    super("connection_failed", message, { cause });
  }
}

/** The daemon did not answer within the client's own time limit. */
export class RequestTimeout extends WarrenError {
  constructor(message = "the daemon did not answer in time") {
    super("request_timeout", message);
  }
}

/** An answer that is not what the API promises: most often something else listens there. */
export class ProtocolError extends WarrenError {
  constructor(message: string) {
    super("protocol_error", message);
  }
}

/** A command that was to succeed (`check: true`) and did not; `result` is all of it. */
export class CommandError extends WarrenError {
  readonly result: Result;
  constructor(result: Result) {
    const end = result.signal ? `signal ${result.signal}` : `exit code ${result.exit_code}`;
    const tail = (result.stderr || result.stdout).trim().slice(-2000);
    super("command_failed", `command ended with ${end} (${result.reason})${tail ? ": " + tail : ""}`);
    this.result = result;
  }
}

/** The daemon refused. `status` is HTTP's, `details` the other members of its error. */
export class ApiError extends WarrenError {
  readonly requestId: string | undefined;
  readonly details: Record<string, unknown>;
  constructor(
    readonly status: number,
    error: Record<string, unknown>,
    readonly retryAfter?: number,
  ) {
    const { code, message, request_id, ...details } = error;
    super(String(code ?? "unknown"), String(message ?? `HTTP ${status}`));
    this.requestId = request_id as string | undefined;
    this.details = details;
  }
}

/** 400, 413, 422: the request itself must change. */
export class InvalidRequest extends ApiError {}
/** 401: no key, or one that is not known. */
export class Unauthorized extends ApiError {}
/** 403: the key may not, a quota is used up, or the sandbox's user lacks the right. */
export class Forbidden extends ApiError {}
/** 404: no such sandbox, process, file, image … */
export class NotFound extends ApiError {}
/** 404 `sandbox_gone`: it existed and ended; `cause` says why, `endedAt` when. */
export class SandboxGone extends NotFound {
  override get cause(): string | undefined {
    return this.details["cause"] as string | undefined;
  }
  get endedAt(): string | undefined {
    return this.details["ended_at"] as string | undefined;
  }
}
/** 409, 412: not in the state that it is in now. */
export class Conflict extends ApiError {}
/** 424: something that this depends on failed: a registry, a template's start. */
export class Failed extends ApiError {}
/** 429, still after the retries; `retryAfter` says in how many seconds to come back. */
export class RateLimited extends ApiError {}
/** 503: for the moment not possible, still after the retries. */
export class Unavailable extends ApiError {}
/** 507: the sandbox's disk limit, or the host's disk, is reached. */
export class NoSpace extends ApiError {}

const byStatus: Record<number, typeof ApiError> = {
  400: InvalidRequest, 413: InvalidRequest, 422: InvalidRequest, 401: Unauthorized, 403: Forbidden,
  404: NotFound, 409: Conflict, 412: Conflict, 424: Failed, 429: RateLimited, 503: Unavailable,
  507: NoSpace,
};

/** The exception for an answer's `error` object, or for the error line of a stream. */
export function errorOf(status: number, error: Record<string, unknown>, retryAfter?: number): ApiError {
  const kind = error["code"] === "sandbox_gone" ? SandboxGone : (byStatus[status] ?? ApiError);
  return new kind(status, error, retryAfter);
}
