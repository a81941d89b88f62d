// Teams, usage, templates, images and logs, against a daemon.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import * as warren from "../dist/index.js";
import { tarOfDirectory } from "../dist/node.js";

const client = new warren.Client();

async function settled() {
  while ((await client.sandboxes.list({ state: "deleting" })).length > 0) await new Promise((r) => setTimeout(r, 20));
}

test("teams and their keys", async () => {
  const team = await client.teams.create({ name: "ts-team", quotas: { sandboxes: 1 } });
  assert.equal(team.quotas.sandboxes, 1);
  assert.ok((await client.teams.list()).some((t) => t.name === "ts-team"));
  assert.equal((await client.teams.update("ts-team", { sandboxes: 0 })).quotas.sandboxes, 0);
  const key = await client.keys.create({ name: "member", team: "ts-team", role: "member" });
  const member = new warren.Client({ key: key.key });
  assert.equal((await member.teams.get("ts-team")).quotas.sandboxes, 0);
  await assert.rejects(member.teams.create({ name: "another" }), warren.Forbidden);
  await client.keys.delete(key.id);
  await client.teams.delete("ts-team");
  await assert.rejects(client.teams.get("ts-team"), warren.NotFound);
});

test("usage", async () => {
  const box = await client.create({ image: "tiny" });
  await box.run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", { check: true });
  await box.stop();
  const span = { from: new Date(Date.now() - 3600e3), to: new Date(Date.now() + 3600e3) };
  let usage;
  do usage = await client.usage({ ...span, sandbox: box.id }); while (!(usage.total.cpu_seconds > 0));
  assert.deepEqual(usage.sandboxes.map((s) => s.sandbox), [box.id]);
  assert.ok((await client.usage({ ...span, step: "hour" })).steps.length > 0);
  await box.delete();
});

test("templates", async () => {
  await client.templates.create({ name: "ts-web", image: "tiny", start_command: "touch /root/up; sleep 1000",
    ready: { command: "test -e /root/up" }, env: { T: "1" }, memory_mb: 64 });
  assert.ok((await client.templates.list()).some((t) => t.name === "ts-web"));
  assert.deepEqual((await client.templates.get("ts-web")).env, { T: "1" });
  await client.sandboxes.with({ template: "ts-web" }, async (box) => {
    assert.equal((await box.run("echo $T; ls /root/up")).stdout, "1\n/root/up\n");
  });
  await client.templates.delete("ts-web");
  await assert.rejects(client.templates.get("ts-web"), warren.NotFound);
});

test("images in full", async () => {
  const tiny = new Uint8Array(fs.readFileSync(process.env.WARREN_TINY));
  await client.images.put("ts-img", tiny, { public: true });
  const image = await client.images.get("ts-img");
  assert.ok(image.public && image.layers === 1);
  assert.ok((await client.images.history("ts-img")).length >= 1);
  assert.equal((await client.images.tag("ts-img", "ts-img:two")).digest, image.digest);
  assert.equal((await client.images.list({ name: "ts-img" })).length, 2);
  await client.sandboxes.with({ image: "ts-img" }, async (box) => {
    await box.run("echo more > /root/more", { check: true });
    assert.equal((await box.commit("ts-more", { env: { MADE: "yes" } })).layers, 2);
  });
  await client.sandboxes.with({ image: "ts-more" }, async (box) => {
    assert.equal((await box.run("cat /root/more; echo $MADE")).stdout, "more\nyes\n");
  });
  const packed = new Uint8Array(await (await client.images.export("ts-more", "docker")).arrayBuffer());
  await client.images.put("ts-back", packed);
  await settled();
  for (const name of ["ts-img:two", "ts-img", "ts-more", "ts-back"]) await client.images.delete(name);
  assert.ok((await client.images.prune()).freed_bytes >= 0);
});

test("building an image", async () => {
  const here = fs.mkdtempSync(path.join(os.tmpdir(), "warren-build-"));
  fs.writeFileSync(`${here}/Dockerfile`, "FROM tiny\nARG WHO=nobody\nRUN echo $WHO > /root/file\n");
  const lines = await client.images.build("ts-built", tarOfDirectory(here), { args: { WHO: "me" } });
  assert.ok((await client.images.result(lines)).name.startsWith("ts-built"));
  await client.sandboxes.with({ image: "ts-built" }, async (box) => {
    assert.equal((await box.run("cat /root/file")).stdout, "me\n");
  });
  fs.writeFileSync(`${here}/Dockerfile`, "FROM tiny\nRUN exit 3\n");
  await assert.rejects(async () => client.images.result(await client.images.build("ts-built", tarOfDirectory(here))),
    (e) => e.code === "build_failed");
  await settled();
  await client.images.delete("ts-built");
  fs.rmSync(here, { recursive: true });
});

test("a registry that is not there", async () => {
  const where = { insecure: true };
  await assert.rejects(async () => client.images.result(await client.images.pull("127.0.0.1:1/nothing", where)),
    (e) => e.code === "registry_failed");
  await assert.rejects(async () => client.images.result(await client.images.push("tiny", { image: "127.0.0.1:1/nothing", ...where })),
    (e) => e.code === "registry_failed");
});

test("logs", async () => {
  await client.sandboxes.with({ image: "tiny" }, async (box) => {
    await (await box.processes.start("echo to the log")).wait();
    let found = false;
    for await (const line of await box.logs()) found ||= (line.text ?? "").includes("to the log");
    assert.ok(found);
    for await (const line of await client.logs({ sandbox: box.id })) assert.ok(line.message);
  });
  assert.match((await client.openapi()).openapi, /^3\./);
});
