// Checkpoints, against a daemon.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as warren from "../dist/index.js";

const client = new warren.Client();
let box;

before(async () => {
  box = await client.create({ image: "tiny" });
});
after(async () => {
  const made = await box.checkpoints();
  await box.delete();
  for (const one of made) await client.checkpoints.delete(one.id);
});

const write = (sandbox, text) => sandbox.files.write("/root/state", text);
const read = (sandbox) => sandbox.files.readText("/root/state");

test("there and back", async () => {
  await write(box, "one\n");
  const first = await box.checkpoint({ name: "ts-first", comment: "c", metadata: { k: "v" } });
  assert.deepEqual([first.sandbox, first.name, first.metadata], [box.id, "ts-first", { k: "v" }]);
  await write(box, "two\n");
  await box.restore("ts-first");
  assert.equal(await read(box), "one\n");
});

test("listed and found", async () => {
  assert.ok((await client.checkpoints.list()).some((c) => c.name === "ts-first"));
  assert.equal((await client.checkpoints.get(`${box.id}:ts-first`)).sandbox, box.id);
  await assert.rejects(client.checkpoints.get("nobody"), { code: "checkpoint_not_found" });
});

test("what changed since", async () => {
  await write(box, "two\n");
  const diff = await client.checkpoints.diff("ts-first", box.id, { paths: ["/root"], text: true });
  assert.equal(diff.changed, 1);
  assert.equal(diff.changes[0].text, "@@ -1,1 +1,1 @@\n-one\n+two\n");
  assert.deepEqual(diff.to, { sandbox: box.id });
});

test("copies, and one that is kept", async () => {
  const copies = await box.fork({ count: 2 });
  try {
    await write(copies[1], "best\n");
    const parent = await copies[1].promote({ end: true });
    assert.equal(parent.id, box.id);
    assert.equal(await read(box), "best\n");
    for (const c of await copies[1].checkpoints()) await client.checkpoints.delete(c.id);
  } finally {
    await copies[0].delete();
  }
});

test("a new one from an old one", async () => {
  const old = await client.checkpoints.start("ts-first");
  assert.equal(await read(old), "one\n");
  assert.equal(old.info.forked_from, box.id);
  await old.delete();
});

test("out as one file and in again", async () => {
  const file = await (await client.checkpoints.export("ts-first")).arrayBuffer();
  const again = await client.checkpoints.import(new Uint8Array(file), { name: "ts-again" });
  assert.deepEqual([again.name, again.reason], ["ts-again", "import"]);
  const copy = await client.checkpoints.start(again.id);
  assert.equal(await read(copy), "one\n");
  await copy.delete();
  await client.checkpoints.delete(again.id);
});
