/** Warren's client for JavaScript: isolated Linux computers for agents and untrusted code. */
export { Checkpoints } from "./checkpoints.js";
export { Client, Events, Images, Keys, Names, Teams, Templates } from "./client.js";
export type { ClientOptions } from "./client.js";
export * from "./errors.js";
export { Files, PolledWatch, Watch } from "./files.js";
export type { Data, FileOptions, RangeOptions, SearchOptions, WriteOptions } from "./files.js";
export { Lines } from "./http.js";
export type { CallOptions, Fetch } from "./http.js";
export type * from "./models.js";
export { ExecStream, Process, Processes } from "./process.js";
export type { CommandOptions, RunOptions, StartOptions, StreamOptions } from "./process.js";
export { Sandbox, Sandboxes } from "./sandbox.js";
export type { ListOptions, VersionOptions } from "./sandbox.js";
export { Secrets, Volume, Volumes } from "./storage.js";
