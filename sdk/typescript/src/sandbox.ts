/** A sandbox: a computer to run commands in. */
import { ApiError } from "./errors.js";
import { Files } from "./files.js";
import { CallOptions, Lines, Transport, parted, quote } from "./http.js";
import type { Binding, Checkpoint, Command, Image, Lease, Network, NetworkEntry, NetworkUsage, Port, PreviewToken, Result, SandboxInfo, SandboxSpec, SandboxUsage } from "./models.js";
import { ExecStream, Process, Processes, RunOptions, StartOptions, StreamOptions, collect, specOf } from "./process.js";

const once = () => ({ "Idempotency-Key": newKey() });

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
      // What is started may have to be fetched from object storage first, whatever that takes.
      ...(method === "POST" ? { timeoutMs: 0 } : {}),
      seen: (headers) => (this.etag = headers.get("ETag") ?? undefined),
    });
    return this.info;
  }

  /** Ask again how it is. */
  refresh(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.ask("GET", "", undefined, options);
  }

  /** Change name, metadata, env, network, bindings, timers or limits; null takes a value away. */
  update(changes: Omit<SandboxSpec, "image" | "template" | "nofile" | "user" | "workdir" | "volumes">,
    options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("PATCH", "", changes, options);
  }

  /** End of life that many seconds from now; null: never. */
  setTimeout(seconds: number | null, options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.update({ timeout_s: seconds }, options);
  }

  /** What it may reach from now on; with `cut` for connections that are open, too. */
  setNetwork(network: Network, options: VersionOptions & { cut?: boolean } = {}): Promise<SandboxInfo> {
    return this.ask("PATCH", options.cut ? "?cut=true" : "", { network }, options);
  }

  /** Which secrets its requests carry from now on, in place of those it had: objects, or lines such as
   *  `openai@api.openai.com/v1/* as=bearer`. */
  setBindings(bindings: (Binding | string)[], options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.update({ bindings }, options);
  }

  /** The latest of what it reached and what it could not, oldest first; `after` is the `number` of the last one seen. */
  async networkLog(options: { after?: number } & CallOptions = {}): Promise<NetworkEntry[]> {
    const { after, signal } = options;
    const path = this.path + "/network/log";
    return (await this.transport.call<{ entries: NetworkEntry[] }>("GET", path, { query: { after }, signal })).entries;
  }

  /** What its network carried since it was made, by host. */
  networkUsage(options: CallOptions = {}): Promise<NetworkUsage> {
    return this.transport.call<NetworkUsage>("GET", this.path + "/network/usage", options);
  }

  /** What it can reach and has reached: hosts, secrets, ports, volumes, programs, files. */
  blast(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.transport.call<Record<string, unknown>>("GET", this.path + "/blast", options);
  }

  /** Which files it changed since it was made from its image. */
  changes(options: { limit?: number } & CallOptions = {}): Promise<Record<string, unknown>> {
    const { limit, signal } = options;
    return this.transport.call<Record<string, unknown>>("GET", this.path + "/changes", { query: { limit }, signal });
  }

  /** What listens in it now, each with the address (`url`) that leads there from outside. */
  async ports(options: CallOptions = {}): Promise<Port[]> {
    const found: Port[] = [];
    for await (const one of this.transport.pages<Port>(`${this.path}/ports`, "ports", {}, options)) found.push(one);
    return found;
  }

  /** Let its bearer into one port, or all; `data` reaches the server inside with each request, as
   *  `X-Verified-User-Data`. A browser opens its `url`, a program sends `X-Warren-Preview-Token`. */
  previewToken(spec: { port?: number; expires_s?: number; data?: Record<string, unknown> } = {}, options: CallOptions = {}): Promise<PreviewToken> {
    return this.transport.call<PreviewToken>("POST", this.path + "/previews/tokens", { json: spec, ...options });
  }

  /** The preview tokens that are good now. */
  async previewTokens(options: CallOptions = {}): Promise<PreviewToken[]> {
    const found: PreviewToken[] = [];
    for await (const one of this.transport.pages<PreviewToken>(`${this.path}/previews/tokens`, "tokens", {}, options)) found.push(one);
    return found;
  }

  /** By its id; refused within a second. */
  async revokePreviewToken(id: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `${this.path}/previews/tokens/${quote(id)}`, options);
  }

  /** End its processes, keep its files. */
  stop(options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("POST", "/stop", undefined, options);
  }

  /** Stop it and keep its files in the daemon's object storage alone; `start` brings them back. */
  async archive(options: CallOptions = {}): Promise<SandboxInfo> {
    const lines = await this.transport.lines<{ type: string }>("POST", `${this.path}/archive`, { json: {}, ...options });
    for await (const _ of lines);
    return this.refresh(options);
  }

  /** Run it again on the files that it has. */
  start(options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("POST", "/start", undefined, options);
  }

  /** Keep its files as they are now, with `memory` its processes too; it goes on. */
  checkpoint(spec: { name?: string; comment?: string; metadata?: Record<string, string>; memory?: boolean } = {},
    options: CallOptions = {}): Promise<Checkpoint> {
    return this.transport.call<Checkpoint>("POST", `${this.path}/checkpoints`, { json: spec, headers: once(), timeoutMs: 0, ...options });
  }

  /** Its checkpoints, the oldest first. */
  async checkpoints(options: CallOptions = {}): Promise<Checkpoint[]> {
    const found: Checkpoint[] = [];
    for await (const one of this.transport.pages<Checkpoint>(`${this.path}/checkpoints`, "checkpoints", {}, options)) found.push(one);
    return found;
  }

  /** Back to a checkpoint, by id or name; `memory: false` starts anew on its files. */
  restore(checkpoint: string, options: CallOptions & { memory?: boolean } = {}): Promise<SandboxInfo> {
    const { memory = true, ...rest } = options;
    return this.ask("POST", "/restore", { checkpoint, memory }, rest);
  }

  /** Copies of it, all running; with `memory` they go on with its processes. */
  async fork(options: CallOptions & { count?: number; memory?: boolean } = {}): Promise<Sandbox[]> {
    const { count = 1, memory = false, ...rest } = options;
    const made = await this.transport.call<{ sandboxes: SandboxInfo[] }>("POST", `${this.path}/fork`,
      { json: { count, memory }, headers: once(), timeoutMs: 0, ...rest });
    return made.sandboxes.map((info) => new Sandbox(this.transport, info));
  }

  /** Put its processes away on disk; it uses no memory until it is resumed, which whatever needs it does by
   *  itself. What cannot be put away is a conflict, `cannot_dump`. */
  pause(options: VersionOptions = {}): Promise<SandboxInfo> {
    return this.ask("POST", "/pause", undefined, options);
  }

  /** Go on with the processes it had; `memory: false` forgets them and starts anew. */
  resume(options: CallOptions & { memory?: boolean } = {}): Promise<SandboxInfo> {
    const { memory, ...rest } = options;
    return this.ask("POST", memory === false ? "/resume?memory=false" : "/resume", undefined, rest);
  }

  /** Give its files to the sandbox that it was forked from, which is the answer; `end` deletes this one afterwards. */
  async promote(spec: { end?: boolean } = {}, options: CallOptions = {}): Promise<Sandbox> {
    const answer = await this.transport.call<{ sandbox: SandboxInfo }>("POST", this.path + "/promote", { json: spec, ...options });
    return new Sandbox(this.transport, answer.sandbox);
  }

  /** End it, files and all. One that is gone already is fine. */
  async delete(options: VersionOptions = {}): Promise<void> {
    try {
      await this.transport.call("DELETE", this.path, { headers: versionHeaders(options), signal: options.signal });
    } catch (error) {
      if (!(error instanceof ApiError) || !["sandbox_gone", "sandbox_not_found"].includes(error.code)) throw error;
    }
  }

  /** Until then it counts as at work: neither frozen nor ended for being idle. */
  keepAwake(seconds: number, reason?: string, options: CallOptions = {}): Promise<Lease> {
    return this.transport.call<Lease>("POST", this.path + "/leases", { ...options, json: { seconds, reason } });
  }

  /** What keeps it awake now. */
  async leases(options: CallOptions = {}): Promise<Lease[]> {
    return (await this.transport.call<{ leases: Lease[] }>("GET", this.path + "/leases", options)).leases;
  }

  /** End a lease, by its id, before its time. */
  async endLease(lease: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `${this.path}/leases/${encodeURIComponent(lease)}`, options);
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
