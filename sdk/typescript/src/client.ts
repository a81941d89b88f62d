/** The client: where the daemon is, who asks, and what it has. */
import { Checkpoints } from "./checkpoints.js";
import { ProtocolError } from "./errors.js";
import { CallOptions, Body, Fetch, Lines, Transport, quote } from "./http.js";
import type { Event, Image, ImageProgress, Key, Name, NetworkPreset, Quotas, SandboxSpec, Team, Template, TemplateSpec, Usage } from "./models.js";
import { Sandbox, Sandboxes, newKey } from "./sandbox.js";
import { Secrets, Volumes } from "./storage.js";

export interface ClientOptions {
  /** Default: `WARREN_URL`, else http://127.0.0.1:7070. */
  url?: string;
  /** Default: `WARREN_API_KEY`. */
  key?: string;
  /** For operators who act for a team. */
  team?: string;
  /** Milliseconds for the daemon's answer (not for commands); default a minute. */
  timeoutMs?: number;
  retries?: number;
  /** Another way to send requests: see `unixFetch` in `warren-sandbox/node`. */
  fetch?: Fetch;
}

function environment(name: string): string | undefined {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const once = () => ({ "Idempotency-Key": newKey() });

/** `client.images`. */
export class Images {
  constructor(private readonly transport: Transport) {}

  /** One's own and public ones; `name` is a prefix. */
  list(options: { name?: string } & CallOptions = {}): Promise<Image[]> {
    return all(this.transport.pages<Image>("/v1/images", "images", { name: options.name }, { signal: options.signal }));
  }

  get(name: string, options: CallOptions = {}): Promise<Image> {
    return this.transport.call<Image>("GET", `/v1/images/${quote(name)}`, options);
  }

  /** What its layers were made by, newest first. */
  async history(name: string, options: CallOptions = {}): Promise<Record<string, unknown>[]> {
    const path = `/v1/images/${quote(name)}/history`;
    return (await this.transport.call<{ history: Record<string, unknown>[] }>("GET", path, options)).history;
  }

  /** Import a root filesystem tar, a `docker save` archive or an OCI layout. */
  put(name: string, body: Body, options: { public?: boolean } & CallOptions = {}): Promise<Image> {
    return this.transport.call<Image>("PUT", `/v1/images/${quote(name)}`, {
      query: { public: options.public || undefined },
      body,
      headers: { "Content-Type": "application/octet-stream" },
      timeoutMs: 0,
      signal: options.signal,
    });
  }

  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/images/${quote(name)}`, options);
  }

  /** Give it one more name. */
  tag(name: string, newName: string, options: CallOptions = {}): Promise<Image> {
    return this.transport.call<Image>("POST", `/v1/images/${quote(name)}/tag`, { json: { name: newName }, ...options });
  }

  /** As a tar stream that other tools load. */
  export(name: string, format: "oci" | "docker" = "oci", options: CallOptions = {}): Promise<Response> {
    return this.transport.open("GET", `/v1/images/${quote(name)}/export`, {
      query: { format },
      headers: { Accept: "*/*" },
      timeoutMs: 0,
      ...options,
    });
  }

  /** Remove what builds of the team cached and no image has; the operator: of every team. */
  prune(options: CallOptions = {}): Promise<{ removed: string[]; freed_bytes: number }> {
    return this.transport.call("POST", "/v1/images/prune", { json: {}, timeoutMs: 0, ...options });
  }

  /** Fetch from a registry: progress, and at last the image. */
  pull(image: string, registry: { name?: string; platform?: string; username?: string; password?: string; insecure?: boolean } = {},
    options: CallOptions = {}): Promise<Lines<ImageProgress>> {
    return this.transport.lines("POST", "/v1/images/pull", { json: { image, ...registry }, ...options });
  }

  /** Send to a registry; `image` says where. */
  push(name: string, registry: { image?: string; username?: string; password?: string; insecure?: boolean } = {},
    options: CallOptions = {}): Promise<Lines<ImageProgress>> {
    return this.transport.lines("POST", `/v1/images/${quote(name)}/push`, { json: registry, ...options });
  }

  /** Build from a context (a tar with a Dockerfile): steps, output, and at last the image. `network` is what its
   *  commands may reach, "open" unless given. */
  build(name: string, context: Body,
    how: { dockerfile?: string; target?: string; args?: Record<string, string>; no_cache?: boolean; network?: NetworkPreset | { rules: string[] } } = {},
    options: CallOptions = {}): Promise<Lines<ImageProgress>> {
    const { dockerfile, target, args = {}, no_cache } = how;
    const network = typeof how.network === "object" ? how.network.rules.join("\n") : how.network;
    return this.transport.lines("POST", "/v1/images/build", {
      query: { name, dockerfile, target, no_cache, network, ...Object.fromEntries(Object.entries(args).map(([k, v]) => [`arg.${k}`, v])) },
      body: context,
      headers: { "Content-Type": "application/x-tar" },
      timeoutMs: 0,
      ...options,
    });
  }

  /** Read a pull's, push's or build's progress to the end: its image, or its error thrown. */
  async result(lines: Lines<ImageProgress>): Promise<Image> {
    let image: Image | undefined;
    for await (const line of lines) if (line.type === "image") image = line.image;
    if (!image) throw new ProtocolError("the stream ended without an image");
    return image;
  }
}

/** `client.templates`. */
export class Templates {
  constructor(private readonly transport: Transport) {}

  /** Make or replace one. */
  create(spec: TemplateSpec, options: CallOptions = {}): Promise<Template> {
    return this.transport.call<Template>("POST", "/v1/templates", { json: spec, headers: once(), ...options });
  }

  list(options: CallOptions = {}): Promise<Template[]> {
    return all(this.transport.pages<Template>("/v1/templates", "templates", {}, options));
  }

  get(name: string, options: CallOptions = {}): Promise<Template> {
    return this.transport.call<Template>("GET", `/v1/templates/${quote(name)}`, options);
  }

  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/templates/${quote(name)}`, options);
  }
}

/** `client.keys`. */
export class Keys {
  constructor(private readonly transport: Transport) {}

  /** A new key; `key` is shown this once. */
  create(spec: { name: string; team?: string; role?: "admin" | "member" }, options: CallOptions = {}): Promise<Key> {
    return this.transport.call<Key>("POST", "/v1/keys", { json: spec, headers: once(), ...options });
  }

  list(options: CallOptions = {}): Promise<Key[]> {
    return all(this.transport.pages<Key>("/v1/keys", "keys", {}, options));
  }

  /** Refused from now on. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/keys/${quote(id)}`, options);
  }
}

/** `client.teams`: for operators. */
export class Teams {
  constructor(private readonly transport: Transport) {}

  create(spec: { name: string; quotas?: Quotas }, options: CallOptions = {}): Promise<Team> {
    return this.transport.call<Team>("POST", "/v1/teams", { json: spec, headers: once(), ...options });
  }

  list(options: CallOptions = {}): Promise<Team[]> {
    return all(this.transport.pages<Team>("/v1/teams", "teams", {}, options));
  }

  get(name: string, options: CallOptions = {}): Promise<Team> {
    return this.transport.call<Team>("GET", `/v1/teams/${quote(name)}`, options);
  }

  update(name: string, quotas: Quotas, options: CallOptions = {}): Promise<Team> {
    return this.transport.call<Team>("PATCH", `/v1/teams/${quote(name)}`, { json: { quotas }, ...options });
  }

  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/teams/${quote(name)}`, options);
  }
}

/** `client.events`: what changed, in order. */
export class Events {
  constructor(private readonly transport: Transport) {}

  async list(options: { since?: number; sandbox?: string; limit?: number } & CallOptions = {}): Promise<Event[]> {
    const { since = 0, sandbox, limit, signal } = options;
    const query = { since, sandbox, limit };
    return (await this.transport.call<{ events: Event[] }>("GET", "/v1/events", { query, signal })).events;
  }

  /** From `since` on, as they happen; leaving the loop ends it. */
  follow(options: { since?: number; sandbox?: string } & CallOptions = {}): Promise<Lines<Event>> {
    const { since = 0, sandbox, signal } = options;
    return this.transport.lines("GET", "/v1/events", { query: { since, sandbox, follow: true }, signal });
  }
}

/** `client.names`: names of one's own that lead to a port of a sandbox. */
export class Names {
  constructor(private readonly transport: Transport) {}

  /** One that is there already is moved. */
  add(name: string, sandbox: string, port: number, options: CallOptions = {}): Promise<Name> {
    return this.transport.call<Name>("POST", "/v1/names", { json: { name, sandbox, port }, ...options });
  }

  list(options: CallOptions = {}): Promise<Name[]> {
    return all(this.transport.pages<Name>("/v1/names", "names", {}, options));
  }

  get(name: string, options: CallOptions = {}): Promise<Name> {
    return this.transport.call<Name>("GET", `/v1/names/${quote(name)}`, options);
  }

  /** It leads nowhere from now on. */
  async delete(name: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/names/${quote(name)}`, options);
  }
}

export class Client {
  readonly transport: Transport;
  readonly sandboxes: Sandboxes;
  readonly images: Images;
  readonly templates: Templates;
  readonly volumes: Volumes;
  readonly checkpoints: Checkpoints;
  readonly secrets: Secrets;
  readonly names: Names;
  readonly keys: Keys;
  readonly teams: Teams;
  readonly events: Events;

  constructor(options: ClientOptions = {}) {
    const { timeoutMs = 60_000, retries = 3, team } = options;
    const url = options.url ?? environment("WARREN_URL") ?? "http://127.0.0.1:7070";
    const fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.transport = new Transport(url, options.key ?? environment("WARREN_API_KEY"), { timeoutMs, retries, team, fetch });
    this.sandboxes = new Sandboxes(this.transport);
    this.images = new Images(this.transport);
    this.templates = new Templates(this.transport);
    this.volumes = new Volumes(this.transport);
    this.checkpoints = new Checkpoints(this.transport);
    this.secrets = new Secrets(this.transport);
    this.names = new Names(this.transport);
    this.keys = new Keys(this.transport);
    this.teams = new Teams(this.transport);
    this.events = new Events(this.transport);
  }

  /** `client.sandboxes.create`. */
  create(spec: SandboxSpec = {}, options: CallOptions = {}): Promise<Sandbox> {
    return this.sandboxes.create(spec, options);
  }

  /** Whether the daemon is well; throws `Unavailable` where it is not. */
  health(options: CallOptions = {}): Promise<{ status: string; version: string; keeper: boolean; sandboxes: number; disk: "ok" | "low" | "full" }> {
    return this.transport.call("GET", "/v1/health", options);
  }

  /** What its host offers. */
  host(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.transport.call("GET", "/v1/host", options);
  }

  /** What was used in a span of time; `step` divides it. */
  usage(span: { from?: string | Date; to?: string | Date; sandbox?: string; team?: string; step?: "hour" | "day";
    limit?: number; cursor?: string } = {}, options: CallOptions = {}): Promise<Usage> {
    const text = (when?: string | Date) => (when instanceof Date ? when.toISOString().replace(/\.\d+/, "") : when);
    return this.transport.call<Usage>("GET", "/v1/usage", {
      query: { ...span, from: text(span.from), to: text(span.to) },
      ...options,
    });
  }

  /** The daemon's own log, one object a line. */
  logs(options: { follow?: boolean; since?: string; level?: string; sandbox?: string } & CallOptions = {},
  ): Promise<Lines<Record<string, unknown>>> {
    const { signal, ...query } = options;
    return this.transport.lines("GET", "/v1/logs", { query, signal });
  }

  /** The API's description. */
  openapi(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.transport.call("GET", "/v1/openapi.json", options);
  }
}
