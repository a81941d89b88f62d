// Against a daemon: WARREN_URL, WARREN_API_KEY, WARREN_SOCKET; its image `tiny`.
import assert from "node:assert/strict";
import fs from "node:fs";
import { after, before, test } from "node:test";
import * as warren from "../dist/index.js";
import { unixFetch } from "../dist/node.js";

const client = new warren.Client();
let box;

before(async () => {
  box = await client.create({ image: "tiny" });
});
after(() => box.delete());

test("the daemon", async () => {
  assert.equal((await client.health()).status, "ok");
  assert.ok((await client.host()).cpus > 0);
  await assert.rejects(new warren.Client({ key: "warren_wrong" }).sandboxes.list(), warren.Unauthorized);
});

test("the socket needs no key", async () => {
  const local = new warren.Client({ url: "http://warren", key: "", fetch: unixFetch(process.env.WARREN_SOCKET) });
  assert.equal((await local.health()).status, "ok");
  await local.sandboxes.with({ image: "tiny" }, async (one) => {
    assert.equal((await one.run("echo $0 hi")).stdout, "/bin/sh hi\n");
  });
});

test("a sandbox's life", async () => {
  const one = await client.sandboxes.create({ image: "tiny", name: "ts-life", env: { A: "1" }, memory_mb: 64 });
  assert.equal(one.state, "running");
  assert.equal(one.name, "ts-life");
  assert.equal((await client.sandboxes.get("ts-life")).id, one.id);
  assert.deepEqual((await one.update({ metadata: { k: "v" } })).metadata, { k: "v" });
  assert.ok((await one.setTimeout(600)).expires_at);
  assert.equal((await one.setTimeout(null)).expires_at, null);
  await one.run("echo kept > /root/note", { check: true });
  const kept = await one.checkpoint({ name: "warm", memory: true });
  assert.ok(kept.memory && kept.memory_bytes > 0);
  assert.deepEqual((await one.checkpoints()).map((c) => c.id), [kept.id]);
  assert.equal((await one.restore("warm")).state, "running");
  for (const copy of await one.fork({ count: 2, memory: true })) await copy.delete();
  assert.equal((await one.pause()).state, "paused");
  assert.equal((await one.resume()).state, "running");
  assert.equal((await one.pause()).state, "paused");
  assert.equal((await one.resume({ memory: false })).state, "running");
  assert.equal((await one.stop()).state, "stopped");
  assert.equal((await one.start()).state, "running");
  assert.equal((await one.run("cat /root/note; echo $A")).stdout, "kept\n1\n");
  assert.ok((await one.usage()).pids >= 0);
  await one.delete();
  await assert.rejects(one.refresh(), (e) => e instanceof warren.SandboxGone && e.cause === "deleted" && !!e.endedAt);
  await one.delete(); // once more is fine
  await assert.rejects(client.sandboxes.delete("never-was"), warren.NotFound);
});

test("a creation that comes twice makes one", async () => {
  const spec = { image: "tiny" };
  const first = await client.sandboxes.create(spec, { idempotencyKey: "ts-once" });
  assert.equal((await client.sandboxes.create(spec, { idempotencyKey: "ts-once" })).id, first.id);
  await first.delete();
});

test("two who change one sandbox", async () => {
  const one = await client.create({ image: "tiny" });
  await one.refresh();
  const ifMatch = one.etag;
  await (await client.sandboxes.get(one.id)).update({ metadata: { by: "another" } });
  await assert.rejects(one.update({ name: "mine" }, { ifMatch }), warren.Conflict);
  await assert.rejects(one.delete({ ifMatch }), (e) => e.code === "precondition_failed");
  await one.refresh();
  assert.deepEqual((await one.update({ metadata: {} }, { ifMatch: one.etag })).metadata, {});
  await one.delete();
});

test("lists go over pages", async () => {
  const made = [];
  for (let i = 0; i < 3; i++) made.push(await client.create({ image: "tiny", metadata: { batch: "ts" } }));
  const query = { metadata: { batch: "ts" }, page: 2 };
  const ids = (await client.sandboxes.list({ order: "asc", ...query })).map((s) => s.id);
  assert.deepEqual(ids, made.map((s) => s.id));
  assert.equal((await client.sandboxes.list({ state: ["running", "stopped"], ...query })).length, 3);
  assert.equal((await client.sandboxes.list({ state: "stopped", ...query })).length, 0);
  for (const one of made) await client.sandboxes.delete(one.id);
});

test("run", async () => {
  const result = await box.run("echo out; echo err >&2; exit 3");
  assert.deepEqual([result.stdout, result.stderr, result.exit_code, result.ok], ["out\n", "err\n", 3, false]);
  assert.equal((await box.run(["echo", "a b", "$HOME"])).stdout, "a b $HOME\n");
  const options = { cwd: "/tmp", env: { X: "y" }, user: "user", stdin: "in" };
  assert.equal((await box.run("pwd; echo $X; id -un; cat", options)).stdout, "/tmp\ny\nuser\nin");
  const short = await box.run("echo 0123456789", { output_limit: 4 });
  assert.ok(short.truncated && short.stdout === "0123");
  await assert.rejects(box.run("echo why >&2; exit 4", { check: true }),
    (e) => e instanceof warren.CommandError && e.result.exit_code === 4 && e.message.includes("why"));
  await assert.rejects(box.run(["no-such-program"]), (e) => e.code === "program_not_found");
  assert.equal((await box.run("sleep 1000", { timeout_s: 0.05 })).reason, "timeout");
  assert.deepEqual([...(await box.run("printf '\\377\\000'")).stdoutBytes], [255, 0]);
});

test("callbacks get whole characters", async () => {
  const out = [];
  const result = await box.run("printf '\\303'; sleep 0.05; printf '\\274'; echo two >&2", { onStdout: (t) => out.push(t), onStderr: (t) => out.push(t) });
  assert.equal(result.stdout, "ü");
  assert.ok(out.includes("ü") && out.includes("two\n"), String(out));
});

test("stream", async () => {
  const seen = [];
  const stream = await box.stream("printf a; printf b >&2; exit 5");
  for await (const event of stream) seen.push(event);
  assert.equal(seen[0].type, "start");
  assert.ok(seen[0].pid > 0);
  assert.equal(seen.at(-1).exit_code, 5);
  assert.equal(stream.exit, seen.at(-1));
  assert.deepEqual(seen.filter((e) => e.type === "stderr").map((e) => e.text), ["b"]);
});

test("leaving a stream leaves the command", async () => {
  await box.run("mkfifo /root/gate", { check: true });
  const stream = await box.stream("echo hi; read line < /root/gate; echo $line", { label: "left" });
  for await (const event of stream) if (event.type === "stdout") break;
  const process = await box.processes.get(stream.process);
  assert.equal(process.info.state, "running");
  assert.equal(process.info.label, "left");
  await box.run("echo through > /root/gate", { check: true });
  assert.equal((await process.result()).stdout, "hi\nthrough\n");
  await process.kill(); // one that has ended is fine
});

test("an abort ends the wait, not the command", async () => {
  const stop = new AbortController();
  const stream = await box.stream("echo hi; sleep 1000", { signal: stop.signal });
  await assert.rejects(async () => {
    for await (const event of stream) if (event.type === "stdout") stop.abort(new Error("enough"));
  }, /enough|abort/i);
  const process = await box.processes.get(stream.process);
  assert.equal(process.info.state, "running");
  await process.kill();
});

test("processes", async () => {
  const process = await box.spawn("read a; echo got $a; read b; echo and $b; cat", { stdin: true, label: "talk" });
  await process.write("x\n");
  await process.write(new TextEncoder().encode("y\n"));
  await process.closeStdin();
  assert.equal((await process.result({ check: true })).stdout, "got x\nand y\n");
  assert.equal((await process.wait()).exit_code, 0);
  assert.equal((await process.refresh()).state, "ended");
  assert.ok((await box.processes.list()).some((p) => p.process === process.number && p.label === "talk"));
  let rest = "";
  for await (const e of await process.output({ since: 4, follow: false })) rest += e.text ?? "";
  assert.equal(rest, "x\nand y\n");
});

test("signals and terminals", async () => {
  const sleeper = await box.processes.start(["sleep", "1000"]);
  assert.ok((await box.processes.list({ all: true })).some((p) => p.pid === sleeper.pid));
  const ended = sleeper.wait();
  await sleeper.signal("SIGTERM", "tree");
  assert.equal((await ended).signal, "SIGTERM");
  const other = await box.processes.start(["sleep", "1000"]);
  await other.kill();
  assert.equal((await other.wait()).signal, "SIGKILL");
  const screen = await box.processes.start("read x; stty size", { pty: { rows: 10, cols: 20 } });
  await screen.resize(33, 44);
  await screen.write("go\n");
  assert.match((await screen.result()).stdout, /33 44/);
});

test("events", async () => {
  const one = await client.create({ image: "tiny" });
  const feed = await client.events.follow({ sandbox: one.id });
  const first = (await feed.next()).value;
  assert.equal(first.type, "sandbox.created");
  await one.stop();
  for await (const event of feed) if (event.type === "sandbox.stopped") break;
  const listed = await client.events.list({ since: first.seq - 1, sandbox: one.id, limit: 1 });
  assert.deepEqual(listed.map((e) => e.seq), [first.seq]);
  await one.delete();
});

test("keys", async () => {
  const key = await client.keys.create({ name: "ts" });
  const other = new warren.Client({ key: key.key });
  assert.ok(Array.isArray(await other.sandboxes.list()));
  assert.ok((await client.keys.list()).some((k) => k.id === key.id));
  await client.keys.delete(key.id);
  await assert.rejects(other.sandboxes.list(), warren.Unauthorized);
});

test("images", async () => {
  const tar = fs.readFileSync(process.env.WARREN_TINY);
  assert.match((await client.images.put("ts/copy", new Uint8Array(tar))).name, /^ts\/copy/);
  assert.ok((await client.images.list()).some((i) => i.name.startsWith("ts/copy")));
  await client.sandboxes.with({ image: "ts/copy" }, async (one) => {
    assert.equal((await one.run("echo hi")).stdout, "hi\n");
  });
  while ((await client.sandboxes.list({ state: "deleting" })).length > 0) await new Promise((r) => setTimeout(r, 20));
  await client.images.delete("ts/copy");
  await assert.rejects(client.create({ image: "ts/copy" }), warren.NotFound);
});
