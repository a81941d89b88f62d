/** Checkpoints: a sandbox's files at one moment, to go back to and to go on from in several ways. */
import { ProtocolError } from "./errors.js";
import { Body, CallOptions, Transport, quote } from "./http.js";
import type { Checkpoint, Comparison, SandboxInfo } from "./models.js";
import { Sandbox, newKey } from "./sandbox.js";

/**
 * `client.checkpoints`. One is told by its id, a name that only one has, or `SANDBOX:NAME`;
 * `sandbox.checkpoint()` makes one.
 */
export class Checkpoints {
  constructor(private readonly transport: Transport) {}

  /** All of the team's, the oldest first. */
  async list(options: CallOptions = {}): Promise<Checkpoint[]> {
    const found: Checkpoint[] = [];
    for await (const one of this.transport.pages<Checkpoint>("/v1/checkpoints", "checkpoints", {}, options)) found.push(one);
    return found;
  }

  get(who: string, options: CallOptions = {}): Promise<Checkpoint> {
    return this.transport.call<Checkpoint>("GET", `/v1/checkpoints/${quote(who)}`, options);
  }

  /** Remove one, wherever in the tree it is; the others stay. */
  async delete(who: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/checkpoints/${quote(who)}`, options);
  }

  /** A new sandbox with its files. */
  async start(who: string, spec: { name?: string; memory?: boolean } = {}, options: CallOptions = {}): Promise<Sandbox> {
    const path = `/v1/checkpoints/${quote(who)}/sandboxes`;
    return new Sandbox(this.transport,
      await this.transport.call<SandboxInfo>("POST", path, { json: spec, headers: { "Idempotency-Key": newKey() }, timeoutMs: 0, ...options }));
  }

  /** Which files differ on the way from `a` to `b`; either may be a sandbox: its files as they are now. */
  diff(a: string, b: string, wanted: { paths?: string[]; text?: boolean; limit?: number } = {}, options: CallOptions = {}): Promise<Comparison> {
    return this.transport.call<Comparison>("GET", `/v1/checkpoints/${quote(a)}/diff`, {
      query: { to: b, path: wanted.paths, text: wanted.text || undefined, limit: wanted.limit },
      ...options,
    });
  }

  /** Its files go to the daemon's object storage; `keep_local: false`: and are here no longer. Using it fetches them again. */
  archive(who: string, how: { keep_local?: boolean } = {}, options: CallOptions = {}): Promise<Checkpoint> {
    return this.moved(who, "archive", how, options);
  }

  /** Its files are here again; the archive stays. */
  fetch(who: string, options: CallOptions = {}): Promise<Checkpoint> {
    return this.moved(who, "fetch", {}, options);
  }

  /** Remove its archive; its files must be here. */
  async unarchive(who: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/checkpoints/${quote(who)}/archive`, { timeoutMs: 0, ...options });
  }

  private async moved(who: string, how: string, json: unknown, options: CallOptions): Promise<Checkpoint> {
    const path = `/v1/checkpoints/${quote(who)}/${how}`;
    for await (const line of await this.transport.lines<{ type: string; checkpoint?: Checkpoint }>("POST", path, { json, ...options })) {
      if (line.checkpoint) return line.checkpoint;
    }
    throw new ProtocolError("the stream ended without a checkpoint");
  }

  /** All of it as one file, a stream. `image: false` leaves out the layers of its image, for a place that has them. */
  export(who: string, options: { image?: boolean } & CallOptions = {}): Promise<Response> {
    return this.transport.open("GET", `/v1/checkpoints/${quote(who)}/export`, {
      query: { image: options.image },
      headers: { Accept: "*/*" },
      timeoutMs: 0,
      signal: options.signal,
    });
  }

  /** A checkpoint from such a file, of this Warren or another. */
  import(body: Body, options: { name?: string } & CallOptions = {}): Promise<Checkpoint> {
    return this.transport.call<Checkpoint>("POST", "/v1/checkpoints/import", {
      query: { name: options.name },
      body,
      headers: { "Content-Type": "application/x-tar" },
      timeoutMs: 0,
      signal: options.signal,
    });
  }
}
