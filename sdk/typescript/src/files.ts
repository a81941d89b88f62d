/** Files in a sandbox. Paths are absolute or relative to the user's home. */
import { ApiError, ProtocolError, errorOf } from "./errors.js";
import { Body, CallOptions, Lines, Query, Transport, bytesOf, readAll } from "./http.js";
import type { Entry, FileEvent, FileUsage, ReplaceResult, SearchResult, WriteResult } from "./models.js";
import * as tar from "./tar.js";

export type Data = Body;

/** What every file operation takes: on whose behalf, by default the sandbox's user. */
export interface FileOptions extends CallOptions {
  user?: string;
}

export interface RangeOptions extends FileOptions {
  start?: number;
  /** The first byte that is not wanted. */
  end?: number;
}

export interface WriteOptions extends FileOptions {
  mode?: number | string;
  parents?: boolean;
  /** Refuse (`Conflict`) unless the file still has this etag. */
  ifMatch?: string;
  /** Refuse (`Conflict`) where there is a file already. */
  onlyNew?: boolean;
}

export interface SearchOptions extends FileOptions {
  regex?: boolean;
  ignore_case?: boolean;
  include?: string[];
}

const raw = { "Content-Type": "application/octet-stream" };

function octal(mode: number | string | undefined): string | undefined {
  return typeof mode === "number" ? mode.toString(8).padStart(4, "0") : mode;
}

async function bytesFrom(data: string | Uint8Array | Blob): Promise<Uint8Array> {
  if (typeof data === "string") return new TextEncoder().encode(data);
  return data instanceof Uint8Array ? data : new Uint8Array(await data.arrayBuffer());
}

/** Changes below a path, as they happen; leaving the loop ends it. */
export class Watch implements AsyncIterableIterator<FileEvent> {
  constructor(private readonly lines: Lines<FileEvent>) {}
  [Symbol.asyncIterator](): this {
    return this;
  }
  next(): Promise<IteratorResult<FileEvent>> {
    return this.lines.next();
  }
  return(): Promise<IteratorResult<FileEvent>> {
    return this.lines.return();
  }
  close(): Promise<void> {
    return this.lines.close();
  }
}

/** A watch that the daemon keeps between polls. */
export class PolledWatch {
  dropped = 0;
  constructor(
    private readonly transport: Transport,
    private readonly path: string,
  ) {}

  /** What happened since the last poll; waits up to `wait_s` (60 at most) for the first. */
  async poll(wait_s = 0, options: CallOptions = {}): Promise<FileEvent[]> {
    const answer = await this.transport.call<{ events: FileEvent[]; dropped: number }>("GET", this.path, {
      query: { wait_s },
      timeoutMs: wait_s * 1000 + 60_000,
      ...options,
    });
    this.dropped += answer.dropped;
    return answer.events;
  }

  async close(options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", this.path, options);
  }
}

/** `sandbox.files`. */
export class Files {
  private readonly base: string;

  constructor(
    private readonly transport: Transport,
    sandbox: string,
  ) {
    this.base = sandbox + "/files";
  }

  private query<T>(method: string, what: string, query: Query, options: FileOptions): Promise<T> {
    return this.transport.call<T>(method, this.base + what, {
      query: { ...query, user: options.user },
      signal: options.signal,
    });
  }

  private post<T>(what: string, json: object, options: FileOptions): Promise<T> {
    return this.transport.call<T>("POST", this.base + what, {
      json: { ...json, user: options.user },
      signal: options.signal,
    });
  }

  // -- one file

  /** A file's bytes as a stream, with the answer's headers. */
  open(path: string, options: RangeOptions = {}): Promise<Response> {
    const { start, end, user, signal } = options;
    const ranged = start !== undefined || end !== undefined;
    const range = `bytes=${start ?? 0}-${end === undefined ? "" : end - 1}`;
    return this.transport.open("GET", this.base, {
      query: { path, user },
      headers: { Accept: "application/octet-stream", ...(ranged ? { Range: range, "Accept-Encoding": "identity" } : {}) },
      signal,
    });
  }

  /** A file's bytes, or a range of them. */
  async read(path: string, options: RangeOptions = {}): Promise<Uint8Array> {
    const response = await this.open(path, options);
    return new Uint8Array(await readAll(() => response.arrayBuffer(), options.signal));
  }

  /** A file's text. */
  async readText(path: string, options: RangeOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** Make or replace a file, at once for everyone who looks. */
  write(path: string, data: Data, options: WriteOptions = {}): Promise<Entry> {
    const { mode, parents, ifMatch, onlyNew } = options;
    return this.put(path, data, { mode: octal(mode), parents }, options, {
      idempotent: !ifMatch && !onlyNew,
      headers: { ...(ifMatch ? { "If-Match": ifMatch } : {}), ...(onlyNew ? { "If-None-Match": "*" } : {}) },
    });
  }

  /** Add to the end of a file, making it where it is missing. */
  append(path: string, data: Data, options: FileOptions = {}): Promise<Entry> {
    return this.put(path, data, { append: true }, options, { idempotent: false, headers: {} });
  }

  private put(path: string, body: Data, query: Query, options: FileOptions,
    how: { idempotent: boolean; headers: Record<string, string> }): Promise<Entry> {
    return this.transport.call<Entry>("PUT", this.base, {
      query: { path, user: options.user, ...query },
      body,
      headers: { ...raw, ...how.headers },
      idempotent: how.idempotent,
      signal: options.signal,
      timeoutMs: 0,
    });
  }

  /** Remove a file or an empty directory; `recursive` a tree; `force`: fine if it is not there. */
  remove(path: string, options: { recursive?: boolean; force?: boolean } & FileOptions = {}): Promise<void> {
    const { recursive, force } = options;
    return this.query("DELETE", "", { path, recursive, force }, options);
  }

  /** What is at a path; `follow: false` of a link itself. */
  stat(path: string, options: { follow?: boolean } & FileOptions = {}): Promise<Entry> {
    return this.query("GET", "/stat", { path, follow: options.follow }, options);
  }

  async exists(path: string, options: FileOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, { follow: false, ...options });
      return true;
    } catch (error) {
      if (error instanceof ApiError && ["file_not_found", "not_a_directory"].includes(error.code)) return false;
      throw error;
    }
  }

  // -- directories

  /** What is in a directory, a page at a time; `depth` levels of it. */
  iterate(path = ".", options: { depth?: number } & FileOptions = {}): AsyncGenerator<Entry> {
    const { depth, user, signal } = options;
    return this.transport.pages<Entry>(this.base + "/list", "entries", { path, depth, user, limit: 1000 }, { signal });
  }

  /** The same as a list. */
  async list(path = ".", options: { depth?: number } & FileOptions = {}): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const entry of this.iterate(path, options)) entries.push(entry);
    return entries;
  }

  mkdir(path: string,
    options: { mode?: number | string; parents?: boolean; exist_ok?: boolean } & FileOptions = {}): Promise<Entry> {
    const { mode, parents, exist_ok } = options;
    return this.post("/mkdir", { path, mode: octal(mode), parents, exist_ok }, options);
  }

  move(from: string, to: string, options: { overwrite?: boolean; parents?: boolean } & FileOptions = {}): Promise<Entry> {
    const { overwrite, parents } = options;
    return this.post("/move", { from, to, overwrite, parents }, options);
  }

  copy(from: string, to: string,
    options: { overwrite?: boolean; recursive?: boolean; parents?: boolean } & FileOptions = {}): Promise<Entry> {
    const { overwrite, recursive, parents } = options;
    return this.post("/copy", { from, to, overwrite, recursive, parents }, options);
  }

  chmod(path: string, mode: number | string, options: { recursive?: boolean } & FileOptions = {}): Promise<Entry> {
    return this.post("/chmod", { path, mode: octal(mode), recursive: options.recursive }, options);
  }

  /** `owner` is `user` or `user:group`. */
  chown(path: string, owner: string, options: { recursive?: boolean; follow?: boolean } & FileOptions = {}): Promise<Entry> {
    const { recursive, follow } = options;
    return this.post("/chown", { path, owner, recursive, follow }, options);
  }

  symlink(path: string, target: string, options: FileOptions = {}): Promise<Entry> {
    return this.post("/symlink", { path, target }, options);
  }

  async readlink(path: string, options: FileOptions = {}): Promise<string> {
    return (await this.query<{ target: string }>("GET", "/readlink", { path }, options)).target;
  }

  truncate(path: string, size = 0, options: FileOptions = {}): Promise<Entry> {
    return this.post("/truncate", { path, size }, options);
  }

  /** How much a tree holds. */
  usage(path = ".", options: FileOptions = {}): Promise<FileUsage> {
    return this.query("GET", "/usage", { path }, options);
  }

  // -- extended attributes

  async xattrs(path: string, options: FileOptions = {}): Promise<Record<string, Uint8Array>> {
    const answer = await this.query<{ xattrs?: Record<string, string>; xattrs_b64?: Record<string, string> }>(
      "GET", "/xattrs", { path }, options);
    const values: Record<string, Uint8Array> = {};
    for (const [k, v] of Object.entries(answer.xattrs ?? {})) values[k] = new TextEncoder().encode(v);
    for (const [k, v] of Object.entries(answer.xattrs_b64 ?? {})) values[k] = bytesOf(v);
    return values;
  }

  async setXattr(path: string, name: string, value: string | Uint8Array, options: FileOptions = {}): Promise<void> {
    const coded = typeof value === "string" ? { value } : { value_b64: btoa(String.fromCharCode(...value)) };
    await this.transport.call("PUT", this.base + "/xattrs", {
      json: { path, name, user: options.user, ...coded },
      signal: options.signal,
    });
  }

  removeXattr(path: string, name: string, options: FileOptions = {}): Promise<void> {
    return this.query("DELETE", "/xattrs", { path, name }, options);
  }

  // -- looking for things

  /** Entries below a path whose name matches one of the patterns (`*.py`). */
  async find(path: string, name: string | string[],
    options: { type?: "file" | "directory" | "symlink"; limit?: number } & FileOptions = {}): Promise<Entry[]> {
    const { type, limit } = options;
    const answer = await this.query<{ entries: Entry[] }>("GET", "/find", { path, name, type, limit }, options);
    return answer.entries;
  }

  /** Where a text (or regular expression) is in files and trees. */
  search(paths: string | string[], text: string, options: { limit?: number } & SearchOptions = {}): Promise<SearchResult> {
    const { regex, ignore_case, include, limit } = options;
    return this.post("/search", { ...where(paths), text, regex, ignore_case, include, limit }, options);
  }

  /** Put another text in its place; `dry_run` only says where. */
  replace(paths: string | string[], text: string, replacement: string,
    options: { dry_run?: boolean } & SearchOptions = {}): Promise<ReplaceResult> {
    const { regex, ignore_case, include, dry_run } = options;
    return this.post("/replace", { ...where(paths), text, replacement, regex, ignore_case, include, dry_run }, options);
  }

  // -- many at once

  /** A file or tree as a stream: `tar`, `tar.gz`, `tar.zst` or `zip`. */
  archive(path: string, format = "tar", options: FileOptions = {}): Promise<Response> {
    return this.transport.open("GET", this.base + "/archive", {
      query: { path, format, user: options.user },
      headers: { Accept: "*/*" },
      signal: options.signal,
    });
  }

  /** Unpack an archive under a directory while it is sent. */
  unpack(path: string, body: Data, options: { format?: string } & FileOptions = {}): Promise<WriteResult> {
    return this.transport.call<WriteResult>("PUT", this.base + "/archive", {
      query: { path, format: options.format, user: options.user },
      body,
      headers: raw,
      signal: options.signal,
      timeoutMs: 0,
    });
  }

  /** Many files, with their directories, in one request. */
  async writeMany(files: Record<string, string | Uint8Array | Blob>,
    options: { mode?: number } & FileOptions = {}): Promise<WriteResult> {
    const total: Required<WriteResult> = { files: 0, bytes: 0, entries: [] };
    const groups = { "/": [] as BlobPart[], ".": [] as BlobPart[] };
    for (const [path, content] of Object.entries(files)) {
      const data = await bytesFrom(content);
      const name = path.replace(/^\/+/, "");
      groups[path.startsWith("/") ? "/" : "."].push(
        ...(tar.header({ name, size: data.length, mode: options.mode ?? 0o644 }) as BlobPart[]),
        data as BlobPart, tar.padding(data.length) as BlobPart);
    }
    for (const [path, parts] of Object.entries(groups)) {
      if (parts.length === 0) continue;
      const done = await this.transport.call<WriteResult>("POST", this.base + "/write", {
        query: { path, user: options.user },
        body: new Blob([...parts, tar.trailer() as BlobPart]),
        headers: { "Content-Type": "application/x-tar" },
        signal: options.signal,
        timeoutMs: 0,
      });
      total.files += done.files;
      total.bytes += done.bytes;
      total.entries.push(...(done.entries ?? []));
    }
    return total;
  }

  /** Many files in one request. One that cannot be read is its error, not thrown. */
  async readMany(paths: string[], options: FileOptions = {}): Promise<Map<string, Uint8Array | ApiError>> {
    const response = await this.transport.open("POST", this.base + "/read", {
      json: { paths, user: options.user },
      headers: { Accept: "multipart/mixed" },
      idempotent: true,
      signal: options.signal,
    });
    const body = new Uint8Array(await readAll(() => response.arrayBuffer(), options.signal));
    return parseMultipart(body, response.headers.get("Content-Type") ?? "", paths);
  }

  // -- changes

  /** Changes as a stream, from the moment that this returns. */
  async watch(path = ".", options: { recursive?: boolean } & FileOptions = {}): Promise<Watch> {
    const { recursive, user, signal } = options;
    const lines = await this.transport.lines<FileEvent>("GET", this.base + "/watch", {
      query: { path, recursive: recursive || undefined, user },
      signal,
    });
    const first = await lines.next();
    if (first.done || (first.value.type as string) !== "ready") {
      await lines.close();
      throw new ProtocolError("a watch must begin with 'ready'");
    }
    return new Watch(lines);
  }

  /** Changes by polling; it ends by itself ten minutes after the last poll. */
  async startWatch(path = ".", options: { recursive?: boolean } & FileOptions = {}): Promise<PolledWatch> {
    const answer = await this.post<{ watch: number }>("/watches", { path, recursive: options.recursive }, options);
    return new PolledWatch(this.transport, `${this.base}/watches/${answer.watch}`);
  }
}

function where(paths: string | string[]): object {
  return typeof paths === "string" ? { path: paths } : { paths };
}

function indexOf(body: Uint8Array, wanted: Uint8Array, from: number): number {
  for (let at = body.indexOf(wanted[0]!, from); at >= 0; at = body.indexOf(wanted[0]!, at + 1)) {
    if (wanted.every((byte, i) => body[at + i] === byte)) return at;
  }
  return -1;
}

/** What stands in a part's quotes: a backslash before quotes, control characters as percent codes. */
function partName(head: string): string {
  const quoted = /filename="((?:[^"\\]|\\.)*)"/i.exec(head)?.[1];
  if (quoted === undefined) throw new ProtocolError("a part of a bulk read has no name");
  return quoted.replace(/\\(.)|%([01][0-9A-F]|7F)/g, (_, escaped: string | undefined, code: string) =>
    escaped ?? String.fromCharCode(parseInt(code, 16)));
}

/** The path that a part was asked for by; its own name if a directory brought it. */
function askedFor(name: string, left: Set<string>): string {
  for (const path of left) {
    const plain = path.replace(/\/+$/, "");
    if (name === plain || (!path.startsWith("/") && name.endsWith("/" + plain))) {
      left.delete(path);
      return path;
    }
  }
  return name;
}

function partError(code: string, text: string): ApiError {
  let error: Record<string, unknown> = { code, message: text };
  try {
    error = JSON.parse(text) as Record<string, unknown>;
  } catch {
    // as it is
  }
  return errorOf(code.endsWith("_not_found") ? 404 : code === "permission_denied" ? 403 : 400, error);
}

/** The parts of a bulk read, each under the path that was asked for. */
export function parseMultipart(body: Uint8Array, type: string, paths: string[]): Map<string, Uint8Array | ApiError> {
  const boundary = /boundary="?([^";]+)"?/.exec(type)?.[1];
  if (!type.startsWith("multipart/") || !boundary) throw new ProtocolError(`a bulk read answered '${type}'`);
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const mark = encoder.encode("--" + boundary);
  const empty = encoder.encode("\r\n\r\n");
  const answer = new Map<string, Uint8Array | ApiError>();
  const left = new Set(paths);
  let at = indexOf(body, mark, 0);
  while (at >= 0 && decoder.decode(body.subarray(at + mark.length, at + mark.length + 2)) !== "--") {
    const end = indexOf(body, empty, at);
    if (end < 0) throw new ProtocolError("a bulk read's answer was cut short");
    const head = decoder.decode(body.subarray(at + mark.length, end));
    const value = (name: string) => new RegExp(`^${name}: *(.*?)\\r?$`, "im").exec(head)?.[1];
    const start = end + 4;
    const size = value("content-length");
    const stop = size ? start + Number(size) : indexOf(body, encoder.encode("\r\n--" + boundary), start);
    at = stop < start ? -1 : indexOf(body, mark, stop);
    if (at < 0) break;
    const code = value("x-warren-error");
    const data = body.slice(start, stop);
    answer.set(askedFor(partName(head), left), code ? partError(code, decoder.decode(data)) : data);
  }
  if (at < 0) throw new ProtocolError("a bulk read's answer was cut short");
  return answer;
}
