/** Commands in a sandbox: those that are waited for and those that go on by themselves. */
import { ApiError, CommandError, ConnectionFailed, ProtocolError } from "./errors.js";
import { CallOptions, Lines, Transport, bytesOf, parted } from "./http.js";
import type { Command, ExecEvent, ExitEvent, ProcessInfo, Result } from "./models.js";

/** What every command takes. */
export interface CommandOptions extends CallOptions {
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  /** Seconds; then it and all that it started are killed, reason `timeout`. */
  timeout_s?: number;
  label?: string;
}

export interface StreamOptions extends CommandOptions {
  /** Fed to it and closed. */
  stdin?: string;
}

export interface RunOptions extends StreamOptions {
  /** Throw `CommandError` unless it ends well. */
  check?: boolean;
  /** Bytes kept of each stream; beyond it `truncated` is true. */
  output_limit?: number;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
}

export interface StartOptions extends CommandOptions {
  /** Keep a pipe open to write to. */
  stdin?: boolean;
  pty?: boolean | { rows: number; cols: number };
}

type Line = {
  type: string;
  data?: string;
  data_b64?: string;
  offset?: number;
  bytes?: number;
  process?: number;
  [member: string]: unknown;
};

/** Text is for the shell, a list is a program and its arguments. */
export function specOf(command: Command, options: object): Record<string, unknown> {
  return { ...(typeof command === "string" ? { shell: command } : { argv: command }), ...options };
}

function eventOf(line: Line): ExecEvent {
  if (line.type !== "stdout" && line.type !== "stderr") return line as unknown as ExecEvent;
  const data = line.data_b64 === undefined ? new TextEncoder().encode(line.data ?? "") : bytesOf(line.data_b64);
  const text = line.data ?? new TextDecoder().decode(data);
  return { type: line.type, offset: line.offset ?? 0, data, text };
}

/** The offset of the first byte after an event. */
function endOf(event: ExecEvent): number | undefined {
  if (event.type === "dropped") return event.offset + event.bytes;
  return event.type === "stdout" || event.type === "stderr" ? event.offset + event.data.length : undefined;
}

/**
 * A command's events as they come. It outlives a broken connection: what was missed is asked for
 * again, from the first missing byte. Ends after `exit`; leaving the loop early leaves the command.
 */
export class ExecStream implements AsyncIterableIterator<ExecEvent> {
  exit: ExitEvent | undefined;
  private done = false;

  constructor(
    private readonly transport: Transport,
    private readonly base: string,
    private lines: Lines<Line>,
    public process: number | undefined = undefined,
    private offset = 0,
    private readonly follow = true,
    private readonly options: CallOptions = {},
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ExecEvent>> {
    while (!this.done) {
      let item: IteratorResult<Line>;
      try {
        item = await this.lines.next();
      } catch (error) {
        if (!(error instanceof ConnectionFailed)) this.done = true;
        if (this.done) throw error;
        await this.again(error);
        continue;
      }
      if (item.done) {
        if (!this.follow) break;
        await this.again(new ConnectionFailed("the stream ended before the command"));
        continue;
      }
      const event = eventOf(item.value);
      if (this.takes(event)) return { done: false, value: event };
    }
    this.done = true;
    return { done: true, value: undefined };
  }

  private takes(event: ExecEvent): boolean {
    const end = endOf(event);
    if (event.type === "start") this.process = event.process;
    if (event.type === "exit") {
      this.exit = event;
      void this.close();
    }
    if (end === undefined) return true;
    if (end <= this.offset && event.type !== "dropped") return false; // known already
    this.offset = end;
    return true;
  }

  private async again(why: unknown): Promise<void> {
    await this.lines.close();
    if (this.process === undefined || !this.follow) {
      this.done = true;
      throw why;
    }
    for (let attempt = 0; ; attempt++) {
      try {
        this.lines = await this.transport.lines<Line>("GET", `${this.base}/${this.process}/output`, {
          query: { since: this.offset, follow: true },
          ...this.options,
        });
        return;
      } catch (error) {
        if (!(error instanceof ConnectionFailed) || attempt >= this.transport.retries) {
          this.done = true;
          throw error;
        }
        await new Promise((resolve) => setTimeout(resolve, Math.min(200 * 2 ** attempt, 2000)));
      }
    }
  }

  async return(): Promise<IteratorResult<ExecEvent>> {
    await this.close();
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    this.done = true;
    await this.lines.close();
  }
}

/** One of a command's two outputs, put together again. */
class Gathered {
  private readonly parts: Uint8Array[] = [];
  private readonly decoder = new TextDecoder();
  private size = 0;
  truncated = false;

  constructor(
    private readonly limit: number,
    private readonly tell?: (text: string) => void,
  ) {}

  add(data: Uint8Array): void {
    const part = data.subarray(0, this.limit - this.size);
    this.truncated ||= part.length < data.length;
    this.size += part.length;
    this.parts.push(part);
    const text = this.decoder.decode(data, { stream: true });
    if (text) this.tell?.(text);
  }

  bytes(): Uint8Array {
    const all = new Uint8Array(this.size);
    let at = 0;
    for (const part of this.parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

/** Read a stream to its end. */
export async function collect(events: ExecStream, options: RunOptions = {}): Promise<Result> {
  const limit = options.output_limit ?? Infinity;
  const out = new Gathered(limit, options.onStdout);
  const err = new Gathered(limit, options.onStderr);
  let pid = 0;
  let dropped = false;
  for await (const event of events) {
    if (event.type === "start") pid = event.pid;
    else if (event.type === "dropped") dropped = true;
    else if (event.type === "stdout") out.add(event.data);
    else if (event.type === "stderr") err.add(event.data);
  }
  const end = events.exit;
  if (!end) throw new ProtocolError("the stream ended without saying how the command did");
  const stdoutBytes = out.bytes();
  const stderrBytes = err.bytes();
  const result: Result = {
    exit_code: end.exit_code, signal: end.signal, reason: end.reason,
    stdout: new TextDecoder().decode(stdoutBytes), stderr: new TextDecoder().decode(stderrBytes),
    stdoutBytes, stderrBytes, truncated: dropped || out.truncated || err.truncated,
    duration_ms: end.duration_ms, cpu_us: end.cpu_us, process: events.process ?? 0, pid,
    ok: end.exit_code === 0 && end.reason === "exit",
  };
  if (options.check && !result.ok) throw new CommandError(result);
  return result;
}

/** A process that goes on whether or not somebody listens. `info` is from when it was asked. */
export class Process {
  private readonly path: string;

  constructor(
    private readonly transport: Transport,
    private readonly base: string,
    public info: ProcessInfo,
  ) {
    this.path = `${base}/${info.process}`;
  }

  /** Its number in the API. */
  get number(): number {
    return this.info.process ?? 0;
  }

  /** Its pid inside the sandbox. */
  get pid(): number {
    return this.info.pid;
  }

  /** Ask again how it is. */
  async refresh(options: CallOptions = {}): Promise<ProcessInfo> {
    return (this.info = await this.transport.call<ProcessInfo>("GET", this.path, options));
  }

  /** Its output from a byte offset on; until it ends, unless `follow` is false. */
  async output(options: { since?: number; follow?: boolean } & CallOptions = {}): Promise<ExecStream> {
    const { since = 0, follow = true, signal } = options;
    const lines = await this.transport.lines<Line>("GET", this.path + "/output", {
      query: { since, follow },
      signal,
    });
    return new ExecStream(this.transport, this.base, lines, this.number, since, follow, { signal });
  }

  /** Until it ended. */
  async wait(options: CallOptions = {}): Promise<ProcessInfo> {
    // By its stream: that says something now and then, so no proxy or client gives up on it.
    const info = await this.refresh(options);
    if (info.state === "running") {
      const stream = await this.output({ since: info.output_bytes ?? 0, ...options });
      for await (const event of stream) if (event.type === "exit") break;
    }
    return this.refresh(options);
  }

  /** Wait for the end and answer with all of its kept output. */
  async result(options: { check?: boolean } & CallOptions = {}): Promise<Result> {
    const result = await collect(await this.output({ signal: options.signal }), options);
    return { ...result, pid: this.pid };
  }

  /** To its standard input or terminal; `eof` closes it afterwards. */
  async write(data: string | Uint8Array, options: { eof?: boolean } & CallOptions = {}): Promise<void> {
    await this.transport.call("POST", this.path + "/stdin", {
      query: { eof: options.eof || undefined },
      body: data,
      headers: { "Content-Type": "application/octet-stream" },
      signal: options.signal,
    });
  }

  /** The end of its standard input. */
  closeStdin(options: CallOptions = {}): Promise<void> {
    return this.write("", { eof: true, ...options });
  }

  /** Send a signal to it, its group, or the whole tree that it started. */
  async signal(
    signal: string | number = "SIGTERM",
    scope: "process" | "group" | "tree" = "process",
    options: CallOptions = {},
  ): Promise<void> {
    await this.transport.call("POST", this.path + "/signal", { json: { signal, scope }, ...options });
  }

  /** Give its terminal another size. */
  async resize(rows: number, cols: number, options: CallOptions = {}): Promise<void> {
    await this.transport.call("POST", this.path + "/resize", { json: { rows, cols }, ...options });
  }

  /** End it and everything that it started, now. One that has ended is fine. */
  async kill(options: CallOptions = {}): Promise<void> {
    try {
      await this.transport.call("DELETE", this.path, options);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "process_ended") throw error;
    }
  }
}

/** `sandbox.processes`. */
export class Processes {
  private readonly base: string;

  constructor(
    private readonly transport: Transport,
    sandbox: string,
  ) {
    this.base = sandbox + "/processes";
  }

  /** Start a command and leave it to itself. */
  async start(command: Command, options: StartOptions = {}): Promise<Process> {
    const [{ pty, ...rest }, call] = parted(options);
    const terminal = pty === true ? { rows: 24, cols: 80 } : pty || undefined;
    const json = specOf(command, { ...rest, pty: terminal });
    return new Process(this.transport, this.base,
      await this.transport.call<ProcessInfo>("POST", this.base, { json, ...call }));
  }

  /** Those that were started through the API; `all`: everything that runs. */
  async list(options: { all?: boolean } & CallOptions = {}): Promise<ProcessInfo[]> {
    const answer = await this.transport.call<{ processes: ProcessInfo[] }>("GET", this.base, {
      query: { all: options.all || undefined },
      signal: options.signal,
    });
    return answer.processes;
  }

  /** One, by its number: to attach again to what another client started. */
  async get(number: number, options: CallOptions = {}): Promise<Process> {
    return new Process(this.transport, this.base,
      await this.transport.call<ProcessInfo>("GET", `${this.base}/${number}`, options));
  }
}
