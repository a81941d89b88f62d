/** What the API takes and answers, with its own names. Times are RFC 3339 text. */

export type Command = string | readonly string[];

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
  user?: string;
  workdir?: string;
  timeout_s?: number | null;
  on_timeout?: "delete" | "stop";
  idle_timeout_s?: number | null;
  on_idle?: "delete" | "stop";
}

export interface SandboxInfo {
  id: string;
  name: string | null;
  state: "creating" | "running" | "stopping" | "stopped" | "deleting";
  image: string;
  template?: string | null;
  cpus: number;
  memory_mb: number;
  disk_mb: number;
  pids: number;
  nofile: number;
  env: Record<string, string>;
  metadata: Record<string, string>;
  user: string;
  workdir: string | null;
  timeout_s: number | null;
  on_timeout: string;
  idle_timeout_s: number | null;
  on_idle: string;
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
