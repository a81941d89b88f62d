/** A sandbox: a computer to run commands in. */
import { ApiError } from "./errors.js";
import { Files } from "./files.js";
import { CallOptions, Lines, Transport, parted, quote } from "./http.js";
import type { Command, Image, Result, SandboxInfo, SandboxSpec, SandboxUsage } from "./models.js";
import { ExecStream, Process, Processes, RunOptions, StartOptions, StreamOptions, collect, specOf } from "./process.js";

/** `ifMatch: sandbox.etag`: only if nobody changed it since (else `Conflict`). */
export interface VersionOptions extends CallOptions {
  ifMatch?: string | undefined;
}

function versionHeaders(options: VersionOptions): Record<string, string> {
  return options.ifMatch ? { "If-Match": options.ifMatch } : {};
}

export class Sandbox {
  /** Of the last answer about it alone. */
  etag: string | undefined;
  readonly files: Files;
  readonly processes: Processes;
  private readonly path: string;

  constructor(
    private readonly transport: Transport,
    public info: SandboxInfo,
  ) {
    this.path = `/v1/sandboxes/${quote(info.id)}`;
    this.files = new Files(transport, this.path);
    this.processes = new Processes(transport, this.path);
  }

  get id(): string {
    return this.info.id;
  }

  get name(): string | null {
    return this.info.name;
  }

  /** As of the last answer; `refresh` asks again. */
  get state(): SandboxInfo["state"] {
    return this.info.state;
  }

  // -- its life

  private async ask(method: string, what: string, json: unknown, options: VersionOptions): Promise<SandboxInfo> {
    this.info = await this.transport.call<SandboxInfo>(method, this.path + what, {
      json,
      headers: versionHeaders(options),
      signal: options.signal,
      seen: (headers) => (this.etag = headers.get("ETag") ?? undefined),
    });
    return this.info;
  }

  /** Ask again how it is. */
  refresh(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.ask("GET", "", undefined, options);
  }

  /** Change name, metadata, env, timers or limits; null takes a value away. */
  update(changes: Omit<SandboxSpec, "image" | "template" | "nofile" | "user" | "workdir">,
    options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("PATCH", "", changes, options);
  }

  /** End of life that many seconds from now; null: never. */
  setTimeout(seconds: number | null, options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.update({ timeout_s: seconds }, options);
  }

  /** End its processes, keep its files. */
  stop(options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("POST", "/stop", undefined, options);
  }

  /** Run it again on the files that it has. */
  start(options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("POST", "/start", undefined, options);
  }

  /** End it, files and all. One that is gone already is fine. */
  async delete(options: VersionOptions = {}): Promise<void> {
    try {
      await this.transport.call("DELETE", this.path, { headers: versionHeaders(options), signal: options.signal });
    } catch (error) {
      if (!(error instanceof ApiError) || !["sandbox_gone", "sandbox_not_found"].includes(error.code)) throw error;
    }
  }

  /** What it uses at this moment. */
  usage(options: CallOptions = {}): Promise<SandboxUsage> {
    return this.transport.call<SandboxUsage>("GET", this.path + "/usage", options);
  }

  /** Make an image of its files as they are now. */
  commit(name: string,
    config: { cmd?: string[]; entrypoint?: string[]; env?: Record<string, string>;
      labels?: Record<string, string>; workdir?: string; user?: string } = {},
    options: CallOptions = {}): Promise<Image> {
    return this.transport.call<Image>("POST", this.path + "/commit", {
      json: { name, ...config },
      timeoutMs: 0,
      ...options,
    });
  }

  /** Output of everything that was started through the API, and its life's events. */
  logs(options: { follow?: boolean; since?: string } & CallOptions = {}): Promise<Lines<Record<string, unknown>>> {
    const { follow, since, signal } = options;
    return this.transport.lines("GET", this.path + "/logs", { query: { follow, since }, signal });
  }

  // -- commands

  /** Run a command and wait for its end. Text goes to the shell, a list is a program and its arguments. */
  async run(command: Command, options: RunOptions = {}): Promise<Result> {
    const { check, output_limit, onStdout, onStderr, ...rest } = options;
    return collect(await this.stream(command, rest), { check, output_limit, onStdout, onStderr } as RunOptions);
  }

  /** Run a command and iterate over its events: `start`, `stdout`, `stderr`, `exit`. */
  async stream(command: Command, options: StreamOptions = {}): Promise<ExecStream> {
    const [rest, call] = parted(options);
    type Line = { type: string };
    const lines = await this.transport.lines<Line>("POST", this.path + "/exec", { json: specOf(command, rest), ...call });
    return new ExecStream(this.transport, this.path + "/processes", lines, undefined, 0, true, call);
  }

  /** Start a command and leave it to itself: `sandbox.processes.start`. */
  spawn(command: Command, options: StartOptions = {}): Promise<Process> {
    return this.processes.start(command, options);
  }
}

export interface ListOptions extends CallOptions {
  state?: string | string[];
  name?: string;
  metadata?: Record<string, string>;
  order?: "asc" | "desc";
  page?: number;
}

/** `client.sandboxes`. */
export class Sandboxes {
  constructor(private readonly transport: Transport) {}

  /** Make a sandbox, running when this resolves. A retry does not make a second one. */
  async create(spec: SandboxSpec = {}, options: { idempotencyKey?: string } & CallOptions = {}): Promise<Sandbox> {
    const info = await this.transport.call<SandboxInfo>("POST", "/v1/sandboxes", {
      json: spec,
      headers: { "Idempotency-Key": options.idempotencyKey ?? newKey() },
      signal: options.signal,
      ...(spec.template ? { timeoutMs: 0 } : {}),
    });
    return new Sandbox(this.transport, info);
  }

  /** A sandbox for as long as `use` works with it; deleted afterwards whatever happens. */
  async with<T>(spec: SandboxSpec, use: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const sandbox = await this.create(spec);
    try {
      return await use(sandbox);
    } finally {
      await sandbox.delete();
    }
  }

  /** One, by its id or name. */
  async get(who: string, options: CallOptions = {}): Promise<Sandbox> {
    return new Sandbox(this.transport,
      await this.transport.call<SandboxInfo>("GET", `/v1/sandboxes/${quote(who)}`, options));
  }

  /** All that match, newest first, a page at a time. */
  async *iterate(options: ListOptions = {}): AsyncGenerator<Sandbox> {
    const { state, name, metadata = {}, order, page = 100, signal } = options;
    const query = {
      state: Array.isArray(state) ? state.join(",") : state, name, order, limit: page,
      ...Object.fromEntries(Object.entries(metadata).map(([k, v]) => [`metadata.${k}`, v])),
    };
    for await (const info of this.transport.pages<SandboxInfo>("/v1/sandboxes", "sandboxes", query, { signal })) {
      yield new Sandbox(this.transport, info);
    }
  }

  /** The same as a list. */
  async list(options: ListOptions = {}): Promise<Sandbox[]> {
    const all: Sandbox[] = [];
    for await (const sandbox of this.iterate(options)) all.push(sandbox);
    return all;
  }

  /** End one, files and all, by its id or name. */
  async delete(who: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/sandboxes/${quote(who)}`, options);
  }
}

/** A fresh idempotency key. */
export function newKey(): string {
  const bytes = globalThis.crypto?.getRandomValues(new Uint8Array(16));
  if (!bytes) return Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join("");
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
