// Files, against a daemon.
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { after, before, beforeEach, test } from "node:test";
import * as warren from "../dist/index.js";
import { downloadDir, downloadFile, uploadDir, uploadFile } from "../dist/node.js";

const client = new warren.Client();
const here = fs.mkdtempSync(path.join(os.tmpdir(), "warren-files-"));
let box, files;

before(async () => {
  box = await client.create({ image: "tiny" });
  files = box.files;
});
beforeEach(() => box.run("rm -rf /root/t && mkdir /root/t", { check: true }));
after(async () => {
  fs.rmSync(here, { recursive: true });
  await box.delete();
});

test("write and read", async () => {
  const entry = await files.write("/root/t/a/b.txt", "hällo\n", { mode: 0o640 });
  assert.deepEqual([entry.path, entry.type, entry.size, entry.mode], ["/root/t/a/b.txt", "file", 7, "0640"]);
  assert.equal(await files.readText("t/a/b.txt"), "hällo\n");
  assert.equal(await files.readText("/root/t/a/b.txt", { start: 1, end: 3 }), "ä");
  assert.equal((await files.append("/root/t/a/b.txt", new Uint8Array([1]))).size, 8);
  assert.equal((await files.write("/root/t/blob", new Blob(["blob"]))).size, 4);
  assert.equal((await files.read("/root/t/blob")).length, 4);
  await assert.rejects(files.read("/root/t/none"), (e) => e.code === "file_not_found");
  await assert.rejects(files.read("/root/t/a/b.txt", { user: "user" }), warren.Forbidden);
});

test("large files stream", async () => {
  const data = Buffer.alloc(5_000_003, "warren ");
  fs.writeFileSync(`${here}/large`, data, { mode: 0o755 });
  assert.equal((await uploadFile(box, `${here}/large`, "/root/t/large")).size, data.length);
  assert.match((await files.stat("/root/t/large")).mode, /755/);
  assert.equal(await downloadFile(box, "/root/t/large", `${here}/back`), data.length);
  assert.ok(fs.readFileSync(`${here}/back`).equals(data));
  const response = await files.open("/root/t/large");
  const reader = response.body.getReader();
  assert.ok((await reader.read()).value.length > 0);
  await reader.cancel(); // and leave the rest
  const stream = Readable.toWeb(Readable.from([data.subarray(0, 1000), data.subarray(1000)]));
  assert.equal((await files.write("/root/t/stream", stream)).size, data.length);
});

test("nobody overwrites what another wrote", async () => {
  const first = await files.write("/root/t/f", "1", { onlyNew: true });
  await assert.rejects(files.write("/root/t/f", "2", { onlyNew: true }), warren.Conflict);
  await files.write("/root/t/f", "22", { ifMatch: first.etag });
  await assert.rejects(files.write("/root/t/f", "333", { ifMatch: first.etag }), (e) => e.code === "precondition_failed");
});

test("directories", async () => {
  assert.equal((await files.mkdir("/root/t/x/y", { mode: "0700" })).type, "directory");
  await assert.rejects(files.mkdir("/root/t/x/y", { exist_ok: false }), warren.Conflict);
  for (const name of ["b", "a", "x/y/z"]) await files.write(`/root/t/${name}`, name);
  assert.deepEqual((await files.list("/root/t")).map((e) => e.name), ["a", "b", "x"]);
  const deep = [];
  for await (const entry of files.iterate("/root/t", { depth: 3 })) deep.push(entry.path);
  assert.ok(deep.includes("/root/t/x/y/z"));
  assert.ok((await files.exists("/root/t/a")) && !(await files.exists("/root/t/none")));
  await assert.rejects(files.remove("/root/t/x"), warren.ApiError);
  await files.remove("/root/t/x", { recursive: true });
  await files.remove("/root/t/x", { force: true });
});

test("changes of one file", async () => {
  await files.write("/root/t/a", "text");
  assert.equal((await files.copy("/root/t/a", "/root/t/sub/b")).path, "/root/t/sub/b");
  assert.equal((await files.move("/root/t/sub/b", "/root/t/c")).path, "/root/t/c");
  await assert.rejects(files.move("/root/t/a", "/root/t/c", { overwrite: false }), warren.Conflict);
  assert.equal((await files.chmod("/root/t/c", 0o600)).mode, "0600");
  assert.equal((await files.chown("/root/t/c", "user:user")).owner, "user");
  assert.equal((await files.truncate("/root/t/c", 2)).size, 2);
  assert.equal((await files.symlink("/root/t/link", "c")).type, "symlink");
  assert.equal(await files.readlink("/root/t/link"), "c");
  assert.equal((await files.stat("/root/t/link", { follow: false })).type, "symlink");
  assert.ok((await files.usage("/root/t")).files >= 2);
});

test("extended attributes", async () => {
  await files.write("/root/t/a", "");
  await files.setXattr("/root/t/a", "user.note", "hi");
  await files.setXattr("/root/t/a", "user.raw", new Uint8Array([255, 0]));
  const values = await files.xattrs("/root/t/a");
  assert.deepEqual([...values["user.raw"]], [255, 0]);
  assert.equal(new TextDecoder().decode(values["user.note"]), "hi");
  await files.removeXattr("/root/t/a", "user.note");
  assert.deepEqual(Object.keys(await files.xattrs("/root/t/a")), ["user.raw"]);
});

test("find, search and replace", async () => {
  await files.write("/root/t/a.py", "one\ntwo one\n");
  await files.write("/root/t/sub/b.py", "One\n");
  await files.write("/root/t/c.txt", "one\n");
  assert.deepEqual((await files.find("/root/t", "*.py")).map((e) => e.path).sort(), ["/root/t/a.py", "/root/t/sub/b.py"]);
  assert.deepEqual((await files.find("/root/t", ["s*", "c*"], { type: "directory" })).map((e) => e.name), ["sub"]);
  const found = await files.search("/root/t", "one", { include: ["*.py"] });
  assert.deepEqual(found.matches.map((m) => [m.path, m.line, m.column]), [["/root/t/a.py", 1, 1], ["/root/t/a.py", 2, 5]]);
  assert.equal((await files.search(["/root/t"], "ONE", { ignore_case: true })).matches.length, 4);
  assert.equal((await files.replace("/root/t", "one", "1", { dry_run: true })).count, 3);
  assert.equal((await files.replace("/root/t", "o[n]e", "1", { regex: true, include: ["a*"] })).count, 2);
  assert.equal(await files.readText("/root/t/a.py"), "1\ntwo 1\n");
});

test("directories in bulk", async () => {
  fs.mkdirSync(`${here}/source/sub`, { recursive: true });
  for (let n = 0; n < 200; n++) fs.writeFileSync(`${here}/source/sub/${n}`, "x".repeat(n));
  fs.writeFileSync(`${here}/source/run`, "#!/bin/sh\necho ran\n", { mode: 0o755 });
  fs.symlinkSync("run", `${here}/source/link`);
  const sent = await uploadDir(box, `${here}/source`, "/root/t/up", { wanted: (name) => name !== "sub/7" });
  assert.ok(sent.files >= 200, JSON.stringify(sent));
  assert.equal((await box.run("ls sub | wc -l; ./link", { cwd: "/root/t/up" })).stdout, "199\nran\n");
  await box.run("ln -s /etc/passwd out; mkfifo pipe", { cwd: "/root/t/up", check: true });
  const got = await downloadDir(box, "/root/t/up", `${here}/got`);
  assert.equal(got.files, 200);
  assert.deepEqual(got.leftOut.map((n) => path.basename(n)).sort(), ["out", "pipe"]);
  assert.equal(fs.readFileSync(`${here}/got/sub/199`, "utf8"), "x".repeat(199));
});

test("archives", async () => {
  await files.write("/root/t/in/a", "content");
  const packed = new Uint8Array(await (await files.archive("/root/t/in", "tar.gz")).arrayBuffer());
  assert.deepEqual([packed[0], packed[1]], [0x1f, 0x8b]);
  assert.equal((await files.unpack("/root/t/out", packed)).files, 1);
  await assert.rejects(files.unpack("/root/t/out", "not an archive".repeat(100), { format: "tar" }), (e) => e.code === "invalid_archive");
});

test("many files", async () => {
  const many = { "t/relative": new Uint8Array([0, 255]), '/root/t/odd "na\nme"': "odd" };
  for (let n = 0; n < 50; n++) many[`/root/t/many/${n}`] = `file ${n}`;
  assert.equal((await files.writeMany(many, { mode: 0o600 })).files, 52);
  const answer = await files.readMany(["/root/t/many/49", "/root/t/none", "t/relative", '/root/t/odd "na\nme"']);
  assert.equal(new TextDecoder().decode(answer.get("/root/t/many/49")), "file 49");
  assert.equal(answer.get("/root/t/none").code, "file_not_found");
  assert.deepEqual([...answer.get("t/relative")], [0, 255]);
  assert.equal((await box.run("ls /root/t/many | wc -l")).stdout, "50\n");
});

test("watching", async () => {
  const watch = await files.watch("/root/t", { recursive: true });
  await box.run("mkdir /root/t/d && echo x > /root/t/d/f", { check: true });
  const seen = [];
  for await (const event of watch) {
    seen.push(`${event.type} ${event.path}`);
    // What goes before its directory is watched is never told.
    if (seen.at(-1) === "create /root/t/d/f") await box.run("rm -f /root/t/d/f", { check: true });
    if (event.type === "remove") break;
  }
  assert.equal(seen[0], "create /root/t/d");
  assert.equal(seen.at(-1), "remove /root/t/d/f");
});

test("watching by polls", async () => {
  const watch = await files.startWatch("/root/t");
  assert.deepEqual(await watch.poll(), []);
  await box.run("echo x > /root/t/f", { check: true });
  const seen = [];
  while (!seen.some((e) => e.type === "write")) seen.push(...(await watch.poll(20)));
  assert.equal(seen[0].type, "create");
  await watch.close();
  await assert.rejects(watch.poll(), warren.NotFound);
});

test("every method is here", () => {
  const text = fs.readFileSync(new URL(import.meta.url), "utf8");
  for (const kind of [warren.Files, warren.PolledWatch]) {
    const names = Object.getOwnPropertyNames(kind.prototype).filter((n) => !["constructor", "query", "post", "put"].includes(n));
    assert.deepEqual(names.filter((n) => !text.includes(`.${n}(`)), []);
  }
});
