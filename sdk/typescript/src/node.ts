/** What needs Node: local files and directories, and the admin socket. */
import * as fs from "node:fs";
import * as http from "node:http";
import * as path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { FileOptions } from "./files.js";
import type { Fetch } from "./http.js";
import type { Entry, WriteResult } from "./models.js";
import type { Sandbox } from "./sandbox.js";
import * as tar from "./tar.js";

/** A `fetch` over a unix socket: `new Client({ url: "http://warren", fetch: unixFetch("/run/warren/warren.sock") })`. */
export function unixFetch(socketPath: string): Fetch {
  return async (input, init) => {
    const url = new URL(input);
    // Buffering what is no stream tells its length.
    const stream = init.body instanceof ReadableStream;
    const data = init.body && !stream ? Buffer.from(await new Response(init.body).arrayBuffer()) : undefined;
    return new Promise<Response>((resolve, reject) => {
      const request = http.request(
        { socketPath, path: url.pathname + url.search, method: init.method, signal: init.signal ?? undefined,
          headers: { ...(init.headers as Record<string, string>), ...(data ? { "Content-Length": data.length } : {}) } },
        (answer) => {
          const headers = new Headers();
          for (const [name, value] of Object.entries(answer.headers)) headers.set(name, String(value));
          const status = answer.statusCode ?? 500;
          const empty = status === 204 || status === 304 || init.method === "HEAD";
          if (empty) answer.resume();
          resolve(new Response(empty ? null : (Readable.toWeb(answer) as ReadableStream), { status, headers }));
        });
      request.on("error", reject);
      if (stream) Readable.fromWeb(init.body as never).on("error", (e) => request.destroy(e)).pipe(request);
      else request.end(data);
    });
  };
}

function streamOf(parts: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  return Readable.toWeb(Readable.from(parts)) as ReadableStream<Uint8Array>;
}

async function* walk(top: string, inner: string, wanted: (name: string) => boolean): AsyncGenerator<Uint8Array> {
  const entries = await fs.promises.readdir(path.join(top, inner), { withFileTypes: true });
  for (const item of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = inner ? `${inner}/${item.name}` : item.name;
    if (!wanted(name)) continue;
    const full = path.join(top, name);
    const stat = await fs.promises.lstat(full);
    const common = { name, mode: stat.mode & 0o7777, mtime: Math.floor(stat.mtimeMs / 1000) };
    if (stat.isSymbolicLink()) {
      yield* tar.header({ ...common, type: "symlink", target: await fs.promises.readlink(full) });
    } else if (stat.isDirectory()) {
      yield* tar.header({ ...common, type: "directory" });
      yield* walk(top, name, wanted);
    } else if (stat.isFile()) {
      yield* fileBlocks(full, common);
    }
  }
}

async function* fileBlocks(full: string, common: { name: string }): AsyncGenerator<Uint8Array> {
  const file = await fs.promises.open(full, "r");
  try {
    const { size } = await file.stat();
    yield* tar.header({ ...common, size });
    // Just as many bytes as the header says, also of a file that changes meanwhile.
    for (let left = size; left > 0; ) {
      const buffer = new Uint8Array(Math.min(left, 1 << 16));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      const part = bytesRead === 0 ? buffer : buffer.subarray(0, bytesRead);
      left -= part.length;
      yield part;
    }
    yield tar.padding(size);
  } finally {
    await file.close();
  }
}

/** A local directory's content as a tar stream; `wanted` is asked about each relative path. */
export function tarOfDirectory(top: string, wanted: (name: string) => boolean = () => true): ReadableStream<Uint8Array> {
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield* walk(top, "", wanted);
    yield tar.trailer();
  }
  return streamOf(whole());
}

/** A local directory's content into one of the sandbox, as one stream. */
export function uploadDir(sandbox: Sandbox, local: string, to: string,
  options: { wanted?: (name: string) => boolean } & FileOptions = {}): Promise<WriteResult> {
  const { wanted, ...rest } = options;
  return sandbox.files.unpack(to, () => tarOfDirectory(local, wanted), { format: "tar", ...rest });
}

/** A local file into the sandbox, its execute bits kept. */
export async function uploadFile(sandbox: Sandbox, local: string, to: string, options: FileOptions = {}): Promise<Entry> {
  const stat = await fs.promises.stat(local);
  const stream = () => Readable.toWeb(fs.createReadStream(local)) as ReadableStream<Uint8Array>;
  return sandbox.files.write(to, stream, { mode: 0o644 | (stat.mode & 0o111), ...options });
}

/** A file of the sandbox into a local one; answers its size. */
export async function downloadFile(sandbox: Sandbox, from: string, local: string, options: FileOptions = {}): Promise<number> {
  const response = await sandbox.files.open(from, options);
  const out = fs.createWriteStream(local);
  if (response.body) await pipeline(Readable.fromWeb(response.body as never), out);
  return out.bytesWritten;
}

export interface Downloaded {
  files: number;
  bytes: number;
  /** Names that were left out: what would lie or lead outside, devices, pipes. */
  leftOut: string[];
}

/**
 * A directory of the sandbox into a local one. What the sandbox sends is not trusted: nothing is
 * written outside, and links that lead out are left out.
 */
export async function downloadDir(sandbox: Sandbox, from: string, local: string, options: FileOptions = {}): Promise<Downloaded> {
  const response = await sandbox.files.archive(from, "tar", options);
  return unpack(Readable.fromWeb(response.body as never), local);
}

/** Unpack a tar that a sandbox made. */
export async function unpack(input: AsyncIterable<Uint8Array>, local: string): Promise<Downloaded> {
  fs.mkdirSync(local, { recursive: true });
  const top = fs.realpathSync(local);
  const done: Downloaded = { files: 0, bytes: 0, leftOut: [] };
  for await (const { entry, content } of tar.read(input)) {
    const place = placeOf(top, entry.name);
    if (place === undefined || !(await make(top, place, entry, content))) {
      done.leftOut.push(entry.name);
    } else if (entry.type === "file") {
      done.files++;
      done.bytes += entry.size;
    }
  }
  return done;
}

function lstat(name: string): fs.Stats | undefined {
  return fs.lstatSync(name, { throwIfNoEntry: false });
}

/** Where an entry goes, its directories made; undefined for one that would lie outside. */
function placeOf(top: string, name: string): string | undefined {
  const parts = name.split("/").filter((p) => p !== "" && p !== ".");
  if (parts.includes("..")) return undefined;
  let place = top;
  for (const [i, part] of parts.entries()) {
    place = path.join(place, part);
    if (i === parts.length - 1) break;
    const stat = lstat(place);
    if (stat && !stat.isDirectory()) return undefined; // a link among them
    if (!stat) fs.mkdirSync(place);
  }
  return place;
}

async function make(top: string, place: string, entry: tar.TarEntry, content: AsyncIterable<Uint8Array>): Promise<boolean> {
  const there = lstat(place);
  if (entry.type === "directory") {
    if (there && !there.isDirectory()) fs.unlinkSync(place);
    fs.mkdirSync(place, { recursive: true });
    return true;
  }
  if (there?.isDirectory()) return false;
  if (entry.type === "symlink") {
    const full = path.resolve(path.dirname(place), entry.target);
    if (path.isAbsolute(entry.target) || !(full + path.sep).startsWith(top + path.sep)) return false;
    if (there) fs.unlinkSync(place);
    fs.symlinkSync(entry.target, place);
    return true;
  }
  if (entry.type === "link") {
    const source = placeOf(top, entry.target);
    if (source === undefined || !lstat(source)?.isFile()) return false;
    if (there) fs.unlinkSync(place);
    fs.linkSync(source, place);
    return true;
  }
  if (entry.type !== "file") return false;
  if (there) fs.unlinkSync(place);
  await pipeline(Readable.from(content), fs.createWriteStream(place, { flags: "wx", mode: 0o600 }));
  // The owner's and the execute bits; never setuid, never writable by others.
  fs.chmodSync(place, 0o644 | (entry.mode & 0o111));
  fs.utimesSync(place, entry.mtime, entry.mtime);
  return true;
}
