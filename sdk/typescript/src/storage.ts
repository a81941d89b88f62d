/** What outlives sandboxes: volumes, which hold files, and secrets, whose values are never shown. */
import { Files } from "./files.js";
import { CallOptions, Transport, quote } from "./http.js";
import type { Bucket, Secret, VolumeCheckpoint, VolumeInfo } from "./models.js";
import { newKey } from "./sandbox.js";

const once = () => ({ "Idempotency-Key": newKey() });

/** One volume. `files` are its own, without a sandbox: the volume is their root. */
export class Volume {
  readonly files: Files;
  private readonly path: string;

  constructor(
    private readonly transport: Transport,
    public info: VolumeInfo,
  ) {
    this.path = `/v1/volumes/${quote(info.id)}`;
    this.files = new Files(transport, this.path);
  }

  get id(): string {
    return this.info.id;
  }

  get name(): string {
    return this.info.name;
  }

  /** Ask again how it is. */
  async refresh(options: CallOptions = {}): Promise<VolumeInfo> {
    return (this.info = await this.transport.call<VolumeInfo>("GET", this.path, options));
  }

  /** What it may hold at most. */
  async resize(sizeMb: number, options: CallOptions = {}): Promise<VolumeInfo> {
    return (this.info = await this.transport.call<VolumeInfo>("PATCH", this.path, { json: { size_mb: sizeMb }, ...options }));
  }

  /** Keep its files as they are now, also while sandboxes write to it. */
  checkpoint(spec: { name?: string; comment?: string } = {}, options: CallOptions = {}): Promise<VolumeCheckpoint> {
    return this.transport.call<VolumeCheckpoint>("POST", `${this.path}/checkpoints`, { json: spec, headers: once(), ...options });
  }

  /** Its checkpoints, the oldest first. */
  async checkpoints(options: CallOptions = {}): Promise<VolumeCheckpoint[]> {
    const found: VolumeCheckpoint[] = [];
    for await (const one of this.transport.pages<VolumeCheckpoint>(`${this.path}/checkpoints`, "checkpoints", {}, options)) found.push(one);
    return found;
  }

  /** Back to those files; refused (`Conflict`) while a sandbox that has it is not stopped. */
  async restore(checkpoint: string, options: CallOptions = {}): Promise<VolumeInfo> {
    return (this.info = await this.transport.call<VolumeInfo>("POST", `${this.path}/restore`, { json: { checkpoint }, ...options }));
  }

  /** A new volume with the files of a checkpoint. */
  async fork(checkpoint: string, spec: { name?: string; size_mb?: number } = {}, options: CallOptions = {}): Promise<Volume> {
    const path = `${this.path}/checkpoints/${quote(checkpoint)}/volumes`;
    return new Volume(this.transport, await this.transport.call<VolumeInfo>("POST", path, { json: spec, headers: once(), ...options }));
  }

  /** Remove a checkpoint; the others stay. */
  async forget(checkpoint: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `${this.path}/checkpoints/${quote(checkpoint)}`, options);
  }

  /** Remove it, files, checkpoints and all; refused (`Conflict`) while a sandbox has it. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", this.path, options);
  }
}

/** `client.volumes`: files that outlive sandboxes. */
export class Volumes {
  constructor(private readonly transport: Transport) {}

  /** With `bucket` it shows a bucket of an object store. */
  async create(spec: { name?: string; size_mb?: number; bucket?: Bucket } = {}, options: CallOptions = {}): Promise<Volume> {
    const json = spec.bucket ? { ...spec, kind: "bucket" } : spec;
    const info = await this.transport.call<VolumeInfo>("POST", "/v1/volumes", { json, headers: once(), ...options });
    return new Volume(this.transport, info);
  }

  async list(options: CallOptions = {}): Promise<Volume[]> {
    const found: Volume[] = [];
    for await (const info of this.transport.pages<VolumeInfo>("/v1/volumes", "volumes", {}, options)) {
      found.push(new Volume(this.transport, info));
    }
    return found;
  }

  /** One, by its id or name. */
  async get(who: string, options: CallOptions = {}): Promise<Volume> {
    return new Volume(this.transport, await this.transport.call<VolumeInfo>("GET", `/v1/volumes/${quote(who)}`, options));
  }

  async delete(who: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/volumes/${quote(who)}`, options);
  }
}

/** `client.secrets`: values go in and are never shown again; bindings use them. */
export class Secrets {
  constructor(private readonly transport: Transport) {}

  create(spec: { name: string; value: string; metadata?: Record<string, string> }, options: CallOptions = {}): Promise<Secret> {
    return this.transport.call<Secret>("POST", "/v1/secrets", { json: spec, headers: once(), ...options });
  }

  async list(options: CallOptions = {}): Promise<Secret[]> {
    const found: Secret[] = [];
    for await (const one of this.transport.pages<Secret>("/v1/secrets", "secrets", {}, options)) found.push(one);
    return found;
  }

  /** What is known of one, by its id or name; not its value. */
  get(who: string, options: CallOptions = {}): Promise<Secret> {
    return this.transport.call<Secret>("GET", `/v1/secrets/${quote(who)}`, options);
  }

  /** A new `value` is a new version. */
  update(who: string, changes: { value?: string; metadata?: Record<string, string> }, options: CallOptions = {}): Promise<Secret> {
    return this.transport.call<Secret>("PATCH", `/v1/secrets/${quote(who)}`, { json: changes, ...options });
  }

  async delete(who: string, options: CallOptions = {}): Promise<void> {
    await this.transport.call("DELETE", `/v1/secrets/${quote(who)}`, options);
  }
}
