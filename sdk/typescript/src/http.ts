/** Requests by fetch: retries where they can do no harm, answers that stream. */
import { ConnectionFailed, ProtocolError, RequestTimeout, errorOf } from "./errors.js";

export type Fetch = (input: string, init: RequestInit) => Promise<Response>;
export type Query = Record<string, string | number | boolean | readonly string[] | null | undefined>;
export type Body = string | Uint8Array | Blob | ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>);

/** What every call takes. */
export interface CallOptions {
  /** Ends the wait (and the connection), not what was started in a sandbox. */
  signal?: AbortSignal | undefined;
}

export interface Request extends CallOptions {
  query?: Query;
  json?: unknown;
  body?: Body;
  headers?: Record<string, string>;
  /** Milliseconds for the answer's head; 0: no limit. */
  timeoutMs?: number;
  idempotent?: boolean;
  /** Gets the answer's head. */
  seen?: (headers: Headers) => void;
}

const longestPauseMs = 30_000;

export class Transport {
  constructor(
    readonly url: string,
    readonly key: string | undefined,
    readonly options: { timeoutMs: number; retries: number; team?: string | undefined; fetch: Fetch },
  ) {
    if (!/^https?:\/\/[^/]/.test(url)) {
      throw new TypeError(`the address must begin with http:// or https://, not '${url}'`);
    }
    this.url = url.replace(/\/+$/, "");
  }

  get retries(): number {
    return this.options.retries;
  }

  /** Ask; the answer is a success, its body unread. */
  async open(method: string, path: string, request: Request = {}): Promise<Response> {
    const headers = this.headers(request);
    const safe =
      (request.idempotent ?? ["GET", "HEAD", "PUT", "DELETE"].includes(method)) ||
      "Idempotency-Key" in headers;
    const replayable = !(request.body instanceof ReadableStream);
    for (let attempt = 1; ; attempt++) {
      let pauseMs = Math.min(100 * 2 ** attempt, 3000) * (0.5 + Math.random() / 2);
      const last = attempt > this.retries || !replayable;
      try {
        const response = await this.once(method, path, request, headers);
        if (response.status < 400) return response;
        const error = await readError(response);
        if (method === "DELETE" && attempt > 1 && response.status === 404) {
          return new Response(null, { status: 204 }); // the attempt that we did not hear of did it
        }
        const again = response.status === 429 || (response.status === 503 && safe);
        const asked = error.retryAfter === undefined ? pauseMs : error.retryAfter * 1000;
        if (!again || last || asked > longestPauseMs) throw error;
        pauseMs = asked;
      } catch (error) {
        if (!(error instanceof ConnectionFailed) || !safe || last) throw error;
      }
      await pause(pauseMs, request.signal);
    }
  }

  private headers(request: Request): Record<string, string> {
    return {
      Accept: "application/json",
      ...(this.key ? { Authorization: `Bearer ${this.key}` } : {}),
      ...(this.options.team ? { "X-Warren-Team": this.options.team } : {}),
      ...(request.json === undefined ? {} : { "Content-Type": "application/json" }),
      ...request.headers,
    };
  }

  private async once(method: string, path: string, request: Request, headers: Record<string, string>) {
    const body = request.json === undefined ? request.body : JSON.stringify(request.json);
    const data = typeof body === "function" ? body() : body;
    const limit = new AbortController();
    const forward = () => limit.abort(request.signal?.reason);
    request.signal?.throwIfAborted();
    // Stays for the answer's body: leaving the caller's signal ends that too.
    request.signal?.addEventListener("abort", forward, { once: true });
    const timeoutMs = request.timeoutMs ?? this.options.timeoutMs;
    const timer = timeoutMs > 0 ? setTimeout(() => limit.abort(new RequestTimeout()), timeoutMs) : undefined;
    try {
      return await this.options.fetch(this.url + path + encodeQuery(request.query), {
        method,
        headers,
        signal: limit.signal,
        ...(data === undefined ? {} : { body: data as BodyInit }),
        ...(data instanceof ReadableStream ? { duplex: "half" } : {}),
      } as RequestInit);
    } catch (error) {
      throw translated(error, limit.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ask and read JSON (`undefined` for an empty answer). */
  async call<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const response = await this.open(method, path, request);
    request.seen?.(response.headers);
    const text = await readAll(() => response.text(), request.signal);
    try {
      return (text ? JSON.parse(text) : undefined) as T;
    } catch {
      throw new ProtocolError(`not JSON (HTTP ${response.status}): ${text.slice(0, 200)}`);
    }
  }

  /** Ask; the answer is one object a line. */
  async lines<T>(method: string, path: string, request: Request = {}): Promise<Lines<T>> {
    const headers = { Accept: "application/x-ndjson", ...request.headers };
    return new Lines<T>(await this.open(method, path, { ...request, headers }));
  }

  /** Everything in a list, a page at a time. */
  async *pages<T>(path: string, member: string, query: Query = {}, options: CallOptions = {}): AsyncGenerator<T> {
    let cursor: string | null = null;
    do {
      const page: Record<string, unknown> = await this.call("GET", path, {
        query: { ...query, cursor },
        ...options,
      });
      yield* page[member] as T[];
      cursor = (page["next_cursor"] as string | null | undefined) ?? null;
    } while (cursor);
  }
}

function translated(error: unknown, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason;
  const cause = error instanceof Error ? (error as { cause?: unknown }).cause : undefined;
  const text = cause instanceof Error ? cause.message : String(error);
  return new ConnectionFailed(`the connection failed: ${text}`, error);
}

/** Read a body; a connection that breaks meanwhile is our own error. */
export async function readAll<T>(read: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw translated(error, signal);
  }
}

async function readError(response: Response) {
  const text = await response.text().catch(() => "");
  const after = response.headers.get("Retry-After");
  let error: Record<string, unknown> | undefined;
  try {
    error = (JSON.parse(text) as { error?: Record<string, unknown> }).error;
  } catch {
    // below
  }
  error ??= { code: "http_error", message: text.slice(0, 200).trim() || `HTTP status ${response.status}` };
  return errorOf(response.status, error, after && /^\d+$/.test(after) ? Number(after) : undefined);
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** The objects of a stream. Pings are left out, an error line is thrown; `close` leaves early. */
export class Lines<T> implements AsyncIterableIterator<T> {
  private readonly reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  private readonly decoder = new TextDecoder();
  private readonly ready: T[] = [];
  private rest = "";
  private done = false;
  private failure: Error | undefined; // told after what came before it

  constructor(response: Response) {
    this.reader = response.body?.getReader();
    this.done = !this.reader;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.ready.length === 0 && !this.done) await this.more();
    const value = this.ready.shift();
    if (value === undefined && this.failure) {
      const failure = this.failure;
      this.failure = undefined;
      await this.close();
      throw failure;
    }
    return value === undefined ? { done: true, value: undefined } : { done: false, value };
  }

  async return(): Promise<IteratorResult<T>> {
    await this.close();
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    this.done = true;
    await this.reader?.cancel().catch(() => undefined);
  }

  private async more(): Promise<void> {
    const part = await readAll(() => this.reader!.read()).catch((error: unknown) => {
      this.done = true;
      throw error;
    });
    this.rest += this.decoder.decode(part.value, { stream: !part.done });
    const texts = this.rest.split("\n");
    this.rest = texts.pop() ?? "";
    if (part.done) {
      this.done = true;
      if (this.rest) throw new ConnectionFailed("the connection broke in the middle of a line");
    }
    for (const text of texts) this.take(text);
  }

  private take(text: string): void {
    let value: Record<string, unknown>;
    try {
      value = JSON.parse(text) as Record<string, unknown>;
    } catch {
      throw new ProtocolError(`not a line of JSON: ${text.slice(0, 200)}`);
    }
    const { type, ...rest } = value;
    if (type === "error") {
      this.failure = errorOf(rest["code"] === "sandbox_gone" ? 404 : 500, rest);
      this.done = true;
    } else if (type !== "ping") {
      this.ready.push(value as T);
    }
  }
}

/** One segment of a path. */
export function quote(part: string): string {
  return encodeURIComponent(part);
}

export function encodeQuery(query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    for (const one of Array.isArray(value) ? (value as string[]) : [value]) pairs.append(name, String(one));
  }
  const text = pairs.toString();
  return text ? "?" + text : "";
}

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
}

/** Signal-carrying options apart from the members that go into a request. */
export function parted<T extends CallOptions>(options: T): [Omit<T, "signal">, CallOptions] {
  const { signal, ...rest } = options;
  return [rest, { signal }];
}
