/** Tar streams: made for uploads, read for downloads. No file system here. */

export interface TarEntry {
  name: string;
  type: "file" | "directory" | "symlink" | "link" | "other";
  mode: number;
  size: number;
  /** Seconds. */
  mtime: number;
  target: string;
}

const block = 512;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const typeOf: Record<string, TarEntry["type"]> = {
  "0": "file", "\0": "file", "7": "file", "1": "link", "2": "symlink", "5": "directory",
};

function field(header: Uint8Array, at: number, text: string): void {
  header.set(encoder.encode(text), at);
}

function rawHeader(name: string, flag: string, entry: Partial<TarEntry>): Uint8Array {
  const header = new Uint8Array(block);
  const octal = (n: number, width: number) => Math.floor(n).toString(8).padStart(width - 1, "0") + "\0";
  field(header, 0, name);
  field(header, 100, octal((entry.mode ?? 0o644) & 0o7777, 8));
  field(header, 108, octal(0, 8));
  field(header, 116, octal(0, 8));
  field(header, 124, octal(entry.size ?? 0, 12));
  field(header, 136, octal(Math.max(entry.mtime ?? 0, 0), 12));
  field(header, 148, "        ");
  field(header, 156, flag);
  field(header, 157, entry.target ?? "");
  field(header, 257, "ustar\x0000");
  const sum = header.reduce((a, b) => a + b, 0);
  field(header, 148, sum.toString(8).padStart(6, "0") + "\0 ");
  return header;
}

export function padding(size: number): Uint8Array {
  return new Uint8Array((block - (size % block)) % block);
}

/** The end of an archive. */
export function trailer(): Uint8Array {
  return new Uint8Array(2 * block);
}

function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const size = encoder.encode(rest).length;
  let length = size + String(size).length;
  if (String(length).length !== String(size).length) length = size + String(length).length;
  return length + rest;
}

/** What stands before an entry's content; long names and large sizes go into a pax header. */
export function header(entry: Partial<TarEntry> & { name: string }): Uint8Array[] {
  const flag = { file: "0", directory: "5", symlink: "2", link: "1", other: "0" }[entry.type ?? "file"];
  const short = (text: string) => encoder.encode(text).length <= 100 && /^[\x20-\x7e]*$/.test(text);
  const large = (entry.size ?? 0) > 0o77777777777;
  let pax = "";
  if (!short(entry.name)) pax += paxRecord("path", entry.name);
  if (!short(entry.target ?? "")) pax += paxRecord("linkpath", entry.target ?? "");
  if (large) pax += paxRecord("size", String(entry.size));
  const own = rawHeader(short(entry.name) ? entry.name : "long", flag, {
    ...entry,
    size: large ? 0 : (entry.size ?? 0),
    target: short(entry.target ?? "") ? (entry.target ?? "") : "long",
  });
  if (!pax) return [own];
  const data = encoder.encode(pax);
  return [rawHeader("pax", "x", { size: data.length }), data, padding(data.length), own];
}

/** Bytes asked for in the sizes that a reader wants. */
class Source {
  private parts: Uint8Array[] = [];
  private size = 0;

  constructor(private readonly input: AsyncIterator<Uint8Array>) {}

  private async fill(size: number): Promise<void> {
    while (this.size < size) {
      const { done, value } = await this.input.next();
      if (done) throw new Error("the archive ends in the middle");
      this.parts.push(value);
      this.size += value.length;
    }
  }

  /** Up to `most` bytes, at least one. */
  async some(most: number): Promise<Uint8Array> {
    await this.fill(1);
    const first = this.parts.shift()!;
    const part = first.subarray(0, most);
    if (part.length < first.length) this.parts.unshift(first.subarray(most));
    this.size -= part.length;
    return part;
  }

  async exactly(size: number): Promise<Uint8Array> {
    await this.fill(size);
    const all = new Uint8Array(size);
    for (let at = 0; at < size; ) {
      const part = await this.some(size - at);
      all.set(part, at);
      at += part.length;
    }
    return all;
  }
}

function text(header: Uint8Array, at: number, size: number): string {
  const part = header.subarray(at, at + size);
  const end = part.indexOf(0);
  return decoder.decode(end < 0 ? part : part.subarray(0, end));
}

function number(header: Uint8Array, at: number, size: number): number {
  if ((header[at]! & 0x80) !== 0) {
    let value = header[at]! & 0x7f;
    for (let i = 1; i < size; i++) value = value * 256 + header[at + i]!;
    return value;
  }
  const value = text(header, at, size).trim();
  if (!/^[0-7]*$/.test(value)) throw new Error("not a tar archive");
  return value ? parseInt(value, 8) : 0;
}

function readPax(data: Uint8Array): Record<string, string> {
  const values: Record<string, string> = {};
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(0x20, at);
    const size = space < 0 ? NaN : parseInt(decoder.decode(data.subarray(at, space)), 10);
    if (!(size > 0) || at + size > data.length) throw new Error("a damaged pax header");
    const record = decoder.decode(data.subarray(space + 1, at + size - 1));
    const equals = record.indexOf("=");
    values[record.slice(0, equals)] = record.slice(equals + 1);
    at += size;
  }
  return values;
}

const longestExtra = 1 << 20;

/** The entries of an archive, each with its content; what is not read of that is skipped. */
export async function* read(
  input: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ entry: TarEntry; content: AsyncIterable<Uint8Array> }> {
  const source = new Source(input[Symbol.asyncIterator]());
  let pax: Record<string, string> = {};
  for (;;) {
    const head = await source.exactly(block);
    if (head.every((b) => b === 0)) return;
    const flag = String.fromCharCode(head[156]!);
    const size = number(head, 124, 12);
    if ("xgLK".includes(flag)) {
      if (size > longestExtra) throw new Error("a pax header that is too large");
      const data = await source.exactly(size);
      await source.exactly(padding(size).length);
      if (flag === "x") pax = { ...pax, ...readPax(data) };
      else if (flag !== "g") pax[flag === "L" ? "path" : "linkpath"] = text(data, 0, data.length);
      continue;
    }
    const prefix = text(head, 257, 6) === "ustar" ? text(head, 345, 155) : "";
    const own = text(head, 0, 100);
    const real = pax["size"] === undefined ? size : Number(pax["size"]);
    const entry: TarEntry = {
      name: pax["path"] ?? (prefix ? `${prefix}/${own}` : own),
      type: typeOf[flag] ?? "other",
      mode: number(head, 100, 8) & 0o7777,
      size: real,
      mtime: Math.floor(Number(pax["mtime"] ?? number(head, 136, 12))),
      target: pax["linkpath"] ?? text(head, 157, 100),
    };
    pax = {};
    let left = entry.type === "symlink" || entry.type === "link" ? 0 : real;
    async function* content(): AsyncGenerator<Uint8Array> {
      while (left > 0) {
        const part = await source.some(left);
        left -= part.length;
        yield part;
      }
    }
    const pad = padding(left).length;
    yield { entry, content: content() };
    while (left > 0) left -= (await source.some(left)).length;
    await source.exactly(pad);
  }
}
