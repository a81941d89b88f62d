/** What the API takes and answers, with its own names. Times are RFC 3339 text. */

export type Command = string | readonly string[];

/** A set of rules by its name. */
export type NetworkPreset = "none" | "agents" | "open";

/** What a sandbox may reach: a set of rules by its name, or rules such as `allow *.example.com 443`, in order; and
 *  perhaps a proxy that all of it goes through. */
export type Network = NetworkPreset | { rules: string[]; proxy?: string | null } | { preset: NetworkPreset; proxy?: string | null };

/** How much a network may carry; null: as the daemon has it. */
export interface NetworkLimits {
  /** At once. */
  connections?: number | null;
  connections_per_s?: number | null;
  /** Each way. */
  rate_mbps?: number | null;
  /** Both ways, ever. */
  total_mb?: number | null;
}

/** A secret that requests carry, added on their way out: the value is never inside. */
export interface Binding {
  /** The name of a secret; or `value`, a text that is none. */
  secret?: string;
  value?: string;
  /** A host, or `*.` and a host. */
  host: string;
  port?: number;
  methods?: string[];
  /** `*` at the end is all that follows. */
  path?: string;
  as?: "bearer" | "header" | "query" | "basic" | "sigv4" | "git";
  header?: string;
  /** `{}` is the value. */
  format?: string;
  query?: string;
  user?: string;
  access_key?: string;
  region?: string;
  service?: string;
  /** `http://NAME.warren` leads there too. */
  name?: string | null;
  /** `https://HOST` itself is answered; true unless said. */
  transparent?: boolean;
  /** How much of an answer comes back; `full` unless said. */
  answer?: "full" | "json-only" | "status" | "none";
}

/** A volume that a sandbox sees. */
export interface Mount {
  /** Its name or id. */
  volume: string;
  path: string;
  read_only?: boolean;
}

/** What a time-out does. */
export type EndAction = "delete" | "stop" | "pause" | "checkpoint";

/** Checkpoints that a sandbox takes by itself, and which of them stay: those that any rule keeps. */
export interface CheckpointPolicy {
  every_s?: number | null;
  before_each_command?: boolean | null;
  on_stop?: boolean | null;
  keep?: { last?: number | null; for_s?: number | null; hourly?: number | null; daily?: number | null } | null;
}

/** Somebody's word that a sandbox is needed: it is not idle before `expires_at`. */
export interface Lease {
  id: string;
  reason: string;
  created_at: string;
  expires_at: string;
}

export interface SandboxSpec {
  image?: string;
  template?: string;
  name?: string;
  cpus?: number;
  memory_mb?: number;
  disk_mb?: number;
  pids?: number;
  nofile?: number;
  env?: Record<string, string>;
  metadata?: Record<string, string>;
  /** Default: nothing but itself. */
  network?: Network;
  network_limits?: NetworkLimits | null;
  /** Objects, or lines such as `openai@api.openai.com/v1/* as=bearer`. */
  bindings?: (Binding | string)[] | null;
  volumes?: Mount[];
  /** Who may reach its ports: who knows its id, or who has a key or a token. */
  preview?: "public" | "private";
  /** Whether a request to its ports starts it again. */
  wake?: "auto" | "always" | "never";
  restart?: "no" | "on-boot" | "always";
  user?: string;
  workdir?: string;
  timeout_s?: number | null;
  on_timeout?: EndAction;
  idle_timeout_s?: number | null;
  on_idle?: EndAction;
  /** Of idleness, until its work stands still; anything that needs it wakes it. */
  freeze_after_s?: number | null;
  checkpoints?: CheckpointPolicy | null;
}

export interface SandboxInfo {
  id: string;
  name: string | null;
  state: "creating" | "running" | "frozen" | "stopping" | "stopped" | "pausing" | "paused" | "archived" | "deleting";
  image: string;
  template?: string | null;
  /** The sandbox whose checkpoint it was made from. */
  forked_from?: string | null;
  /** The checkpoint that its files came from or were last kept in. */
  checkpoint?: string | null;
  cpus: number;
  memory_mb: number;
  disk_mb: number;
  pids: number;
  nofile: number;
  env: Record<string, string>;
  metadata: Record<string, string>;
  network: Network;
  network_limits: NetworkLimits;
  bindings: Binding[];
  volumes: Mount[];
  preview: "public" | "private";
  wake: "auto" | "always" | "never";
  restart: "no" | "on-boot" | "always";
  user: string;
  workdir: string | null;
  timeout_s: number | null;
  on_timeout: string;
  idle_timeout_s: number | null;
  on_idle: string;
  freeze_after_s: number | null;
  checkpoints: CheckpointPolicy | null;
  frozen_at: string | null;
  awake_until: string | null;
  created_at: string;
  started_at: string | null;
  stopped_at: string | null;
  expires_at: string | null;
  last_active_at: string | null;
  stop_cause: string | null;
}

/** What a sandbox uses at this moment. */
export interface SandboxUsage {
  cpu_us: number;
  memory_bytes: number;
  memory_peak_bytes: number;
  disk_bytes: number;
  pids: number;
  oom_kills: number;
}

/** What a sandbox tried to reach: a connection, or a name that was denied. */
export interface NetworkEntry {
  number: number;
  time: string;
  kind: "connection" | "dns";
  protocol: string;
  name: string | null;
  address: string | null;
  port: number | null;
  verdict: "allowed" | "denied";
  reason: string;
  rule: string | null;
  error: string | null;
  /** How to get it through; null: it passed, or nobody knows. */
  hint: string | null;
  program: string | null;
  /** The secret that it carried. */
  binding: string | null;
  /** It is not over yet. */
  open: boolean;
  sent_bytes: number;
  received_bytes: number;
}

/** What a network carried. */
export interface NetworkSum {
  connections: number;
  sent_bytes: number;
  received_bytes: number;
  denied: number;
}

/** What a sandbox's network carried since it was made. */
export interface NetworkUsage {
  egress: NetworkSum;
  previews: { requests: number; sent_bytes: number; received_bytes: number };
  hosts: ({ host: string; first: string | null; last: string | null } & NetworkSum)[];
  /** Of hosts that are not listed. */
  other: NetworkSum;
}

/** What listens in a sandbox, and where it is reached from outside. */
export interface Port {
  port: number;
  address: string;
  protocol: string;
  program: string | null;
  url: string | null;
}

/** Lets its bearer into a sandbox's previews; `token` and `url` are told once, to who makes it. */
export interface PreviewToken {
  id: string;
  sandbox: string;
  port: number | null;
  data: Record<string, unknown> | null;
  created_at: string;
  expires_at: string;
  token?: string;
  url?: string | null;
}

/** A name of one's own that leads to a port of a sandbox. */
export interface Name {
  name: string;
  sandbox: string;
  port: number;
  created_at: string;
  certificate: { expires_at: string | null; error: string | null; next_try_at: string | null } | null;
}

export type EndReason = "exit" | "signal" | "oom" | "timeout";

/** How a command ended, and what it printed. */
export interface Result {
  exit_code: number;
  signal: string | null;
  reason: EndReason;
  stdout: string;
  stderr: string;
  stdoutBytes: Uint8Array;
  stderrBytes: Uint8Array;
  truncated: boolean;
  duration_ms: number;
  cpu_us: number;
  process: number;
  pid: number;
  /** It ended by itself with exit code 0. */
  ok: boolean;
}

/** One line of a command's stream. */
export type ExecEvent =
  | { type: "start"; process: number; pid: number }
  | { type: "stdout" | "stderr"; offset: number; data: Uint8Array; text: string }
  | { type: "dropped"; offset: number; bytes: number }
  | {
      type: "exit";
      exit_code: number;
      signal: string | null;
      reason: EndReason;
      duration_ms: number;
      cpu_us: number;
    };

export type ExitEvent = Extract<ExecEvent, { type: "exit" }>;

export interface ProcessInfo {
  process: number | null;
  pid: number;
  ppid?: number | null;
  argv: string[];
  label: string | null;
  user: string | null;
  state: "running" | "ended";
  started_at: string | null;
  ended_at: string | null;
  exit_code: number | null;
  signal: string | null;
  reason: EndReason | null;
  cpu_us: number | null;
  rss_bytes: number | null;
  output_bytes: number | null;
  pty: unknown;
}

export interface Entry {
  name: string;
  path: string;
  type: "file" | "directory" | "symlink" | "fifo" | "socket" | "chardev" | "blockdev";
  size: number;
  mode: string;
  permissions: string;
  uid: number;
  gid: number;
  owner: string | null;
  group: string | null;
  modified_at: string;
  accessed_at: string;
  changed_at: string;
  inode: number;
  links: number;
  disk_bytes: number;
  target: string | null;
  etag: string;
}

/** `line` and `column` count from 1. */
export interface Match {
  path: string;
  line: number;
  column: number;
  offset: number;
  text: string;
}

export interface SearchResult {
  matches: Match[];
  files: number;
  truncated: boolean;
  skipped: unknown[];
}

export interface ReplaceResult {
  changed: { path: string; count: number }[];
  files: number;
  count: number;
  skipped: { path: string; code: string; message: string }[];
}

export interface FileUsage {
  disk_bytes: number;
  size: number;
  files: number;
  directories: number;
}

export interface WriteResult {
  files: number;
  bytes: number;
  entries?: { path: string; size: number }[];
}

export interface FileEvent {
  type: "create" | "write" | "remove" | "rename" | "chmod" | "overflow";
  path: string;
  to?: string;
  entry: Entry | null;
  time: string;
}

export interface ImageConfig {
  env: Record<string, string>;
  cmd: string[];
  entrypoint: string[];
  user: string;
  workdir: string;
  ports: unknown[];
  labels: Record<string, string>;
}

export interface Image {
  name: string;
  id?: string;
  digest: string;
  size_bytes: number;
  shared_bytes?: number;
  layers?: number;
  os?: string;
  architecture?: string;
  created_at: string;
  public?: boolean;
  /** Whose it is; another team's is named team/name. */
  team?: string;
  config?: ImageConfig;
  layer_list?: { digest: string; diff_id: string; size_bytes: number; compressed_bytes: number; created_by: string }[];
}

/** A line of a pull's, push's or build's progress; the last has the image. */
export interface ImageProgress {
  type: "layer" | "step" | "cached" | "log" | "image";
  image?: Image;
  [member: string]: unknown;
}

export interface TemplateSpec {
  name: string;
  image: string;
  start_command?: Command | null;
  ready?:
    | null
    | { command: Command }
    | { port: number }
    | { http: { port: number; path: string; status?: number } };
  ready_timeout_s?: number;
  env?: Record<string, string>;
  ports?: number[];
  network?: Network;
  bindings?: (Binding | string)[] | null;
  preview?: "public" | "private";
  wake?: "auto" | "always" | "never";
  user?: string;
  workdir?: string;
  cpus?: number;
  memory_mb?: number;
  disk_mb?: number;
  pids?: number;
  warm?: number;
  public?: boolean;
}

export interface Template extends TemplateSpec {
  created_at?: string;
  ready_sandboxes?: number;
  /** One that is ready is kept with its memory, and new sandboxes are copies of it. */
  memory_kept?: boolean;
}

export interface VolumeInfo {
  id: string;
  name: string;
  kind: "files" | "bucket";
  bucket?: Bucket;
  size_mb: number;
  /** Where one is asked for alone. */
  used_bytes?: number;
  /** How many see it. */
  sandboxes: number;
  created_at: string;
}

/** A bucket of an S3-compatible object store. */
export interface Bucket {
  /** http[s]://HOST[:PORT] */
  endpoint: string;
  bucket: string;
  access_key: string;
  /** The name of the secret that holds the key's other half. */
  secret: string;
  prefix?: string;
  region?: string;
  path_style?: boolean;
  read_only?: boolean;
}

/** A volume's files as they were. */
/** A file that differs. */
export interface Change {
  path: string;
  change: "added" | "changed" | "removed";
  type: "file" | "directory" | "symlink" | "other";
  size_bytes: number;
  size_before_bytes: number;
  mode: string | null;
  mode_before: string | null;
  modified_at: string | null;
  /** Where it was asked for: the hunks of a unified diff. */
  text?: string | null;
  text_state?: "whole" | "cut" | "binary" | "too_large";
}

/** How two states differ; all are counted, `more` says that not all are listed. */
export interface Comparison {
  from: { checkpoint?: string; sandbox?: string };
  to: { checkpoint?: string; sandbox?: string };
  added: number;
  changed: number;
  removed: number;
  bytes: number;
  more: boolean;
  changes: Change[];
}

/** A sandbox's files, and with `memory` its processes, as they were. */
export interface Checkpoint {
  id: string;
  sandbox: string;
  parent: string | null;
  name: string | null;
  comment: string;
  reason: string;
  metadata: Record<string, string>;
  disk_bytes: number;
  memory: boolean;
  memory_bytes: number;
  created_at: string;
  /** Its files are here; else in object storage alone. */
  local: boolean;
  archived_at: string | null;
  /** How long the sandbox stood still; told when it is made. */
  frozen_ms?: number;
}

export interface VolumeCheckpoint {
  id: string;
  /** The volume's id. */
  volume: string;
  name: string | null;
  comment: string;
  disk_bytes: number;
  created_at: string;
  /** How long sandboxes stood still; told when it is made. */
  frozen_ms?: number;
}

/** What is known of a secret; its value is not shown. */
export interface Secret {
  id: string;
  name: string;
  version: number;
  metadata: Record<string, string>;
  created_at: string;
  updated_at: string;
}

export interface Key {
  id: string;
  name: string;
  /** Shown once, by `create`. */
  key?: string;
  team?: string;
  role?: "admin" | "member";
  created_at: string;
  last_used_at: string | null;
}

export interface Quotas {
  sandboxes?: number | null;
  cpus?: number | null;
  memory_mb?: number | null;
  disk_mb?: number | null;
}

export interface Team {
  name: string;
  quotas: Quotas;
  in_use: Quotas;
  /** What takes in_use.disk_mb, in MiB: sandboxes_mb, volumes_mb, builds_mb, checkpoints_mb, images_mb, uploads_mb, network_mb, coming_mb. */
  disk?: Record<string, number>;
  created_at: string;
}

export interface UsageSums {
  cpu_seconds: number;
  memory_gib_seconds: number;
  disk_gib_seconds: number;
  network_rx_bytes: number;
  network_tx_bytes: number;
}

export interface Usage {
  team: string;
  from: string;
  to: string;
  total: UsageSums;
  sandboxes: (UsageSums & { sandbox: string; name: string | null })[];
  steps: (UsageSums & { from: string })[];
  next_cursor: string | null;
}

export interface Event {
  seq: number;
  time: string;
  type: string;
  sandbox: string | null;
  data: Record<string, unknown>;
}
