// Without a daemon: parsing, retries, errors, archives.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import * as warren from "../dist/index.js";
import { parseMultipart } from "../dist/files.js";
import { encodeQuery } from "../dist/http.js";
import { tarOfDirectory, unpack } from "../dist/node.js";
import * as tar from "../dist/tar.js";

/** A server with these answers ([status, headers, body], or null to hang up); what it was asked. */
async function answering(replies, use) {
  const asked = [];
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on("data", (d) => parts.push(d));
    request.on("end", () => {
      asked.push({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(parts).toString() });
      const reply = replies.shift();
      if (!reply) return request.socket.destroy();
      response.writeHead(reply[0], reply[1]);
      response.end(reply[2]);
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    return await use(new warren.Client({ url: `http://127.0.0.1:${server.address().port}`, key: "k" }), asked);
  } finally {
    server.closeAllConnections?.();
    await new Promise((closed) => server.close(closed));
  }
}

const OK = [200, {}, '{"status": "ok"}'];
const error = (status, code, headers = {}) => [status, headers, JSON.stringify({ error: { code, message: "no", cause: "idle" } })];

test("a busy daemon is asked again", () =>
  answering([error(429, "too_many_requests", { "Retry-After": "0" }), error(503, "capacity"), OK], async (client, asked) => {
    assert.equal((await client.health()).status, "ok");
    assert.equal(asked.length, 3);
  }));

test("a broken connection is made again only where that is safe", async () => {
  await answering([null, OK], async (client, asked) => {
    await client.health();
    assert.equal(asked.length, 2);
  });
  await answering([null, OK], async (client, asked) => {
    await assert.rejects(client.transport.call("POST", "/v1/sandboxes/x/exec", { json: {} }), warren.ConnectionFailed);
    assert.equal(asked.length, 1);
  });
});

test("a creation is repeated under one key", () =>
  answering([null, [201, {}, '{"id": "abc"}']], async (client, asked) => {
    assert.equal((await client.create()).id, "abc");
    assert.equal(asked[0].headers["idempotency-key"], asked[1].headers["idempotency-key"]);
    assert.ok(asked[0].headers["idempotency-key"].length >= 16);
  }));

test("a long pause is left to the caller", () =>
  answering([error(429, "too_many_requests", { "Retry-After": "3600" })], (client) =>
    assert.rejects(client.health(), (e) => e instanceof warren.RateLimited && e.retryAfter === 3600)));

test("errors have classes and codes", async () => {
  const kinds = { 400: "InvalidRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict",
    412: "Conflict", 424: "Failed", 507: "NoSpace", 500: "ApiError" };
  for (const [status, name] of Object.entries(kinds)) {
    await answering([error(Number(status), "some_code")], (client) =>
      assert.rejects(client.health(), (e) => e instanceof warren[name] && e.code === "some_code" && e.name === name));
  }
  await answering([error(404, "sandbox_gone")], (client) =>
    assert.rejects(client.health(), (e) => e instanceof warren.SandboxGone && e.cause === "idle"));
});

test("what is not our daemon is said so", async () => {
  await answering([[200, {}, "<html>"]], (client) => assert.rejects(client.health(), warren.ProtocolError));
  await answering([[502, {}, "bad gateway"]], (client) =>
    assert.rejects(client.health(), (e) => e.code === "http_error" && e.message === "bad gateway"));
  assert.throws(() => new warren.Client({ url: "ftp://x" }), TypeError);
});

test("an answer that does not come is a timeout, an abort is the caller's own", async () => {
  const server = http.createServer(() => undefined);
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const url = `http://127.0.0.1:${server.address().port}`;
  await assert.rejects(new warren.Client({ url, timeoutMs: 30 }).health(), warren.RequestTimeout);
  const signal = AbortSignal.timeout(30);
  await assert.rejects(new warren.Client({ url }).health({ signal }), (e) => e === signal.reason);
  server.closeAllConnections?.();
  await new Promise((closed) => server.close(closed));
});

test("an upload is sent again from its start", () =>
  answering([null, [200, {}, '{"size": 5}']], async (client, asked) => {
    const files = new warren.Files(client.transport, "/v1/sandboxes/x");
    const again = () => Readable.toWeb(Readable.from([Buffer.from("hello")]));
    assert.equal((await files.write("/x", again)).size, 5);
    assert.deepEqual(asked.map((a) => a.body), ["hello", "hello"]);
  }));

test("a stream's error line comes after what was before it", () =>
  answering([[200, {}, '{"seq": 1}\n{"type": "ping"}\n{"type": "error", "code": "sandbox_gone", "message": "m"}\n']], async (client) => {
    const lines = await client.events.follow();
    assert.equal((await lines.next()).value.seq, 1);
    await assert.rejects(lines.next(), warren.SandboxGone);
    assert.equal((await lines.next()).done, true);
  }));

test("half a line is a broken connection", () =>
  answering([[200, {}, '{"seq": 1}\n{"seq"']], async (client) => {
    const lines = await client.events.follow();
    await assert.rejects(async () => { for await (const _ of lines); }, warren.ConnectionFailed);
  }));

test("queries", () => {
  assert.equal(encodeQuery({ a: true, b: undefined, c: ["x", "y&"], d: 1, e: null }), "?a=true&c=x&c=y%26&d=1");
  assert.equal(encodeQuery({}), "");
});

test("the parts of a bulk read", () => {
  const name = (text) => `Content-Disposition: attachment; filename="${text}"\r\n`;
  const body = new TextEncoder().encode("--B\r\n" + name("/a") + "Content-Length: 7\r\n\r\n--B\r\nx\r\n" +
    "\r\n--B\r\n" + name('/root/b\\"%0A%41') + "Content-Length: 0\r\n\r\n" +
    "\r\n--B\r\n" + name("c") + 'X-Warren-Error: file_not_found\r\n\r\n{"code": "file_not_found", "message": "no"}\r\n--B--\r\n');
  const type = 'multipart/mixed; boundary="B"';
  const parts = parseMultipart(body, type, ["c", "/a", 'b"\n%41']);
  assert.equal(new TextDecoder().decode(parts.get("/a")), "--B\r\nx\r\n".slice(0, 7));
  assert.equal(parts.get('b"\n%41').length, 0);
  assert.equal(parts.get("c").code, "file_not_found");
  assert.ok(parseMultipart(body, type, []).has('/root/b"\n%41')); // from a directory
  for (const cut of [20, 70, body.length - 8]) {
    assert.throws(() => parseMultipart(body.slice(0, cut), type, ["/a"]), warren.ProtocolError);
  }
});

async function inTemporary(use) {
  const top = fs.mkdtempSync(path.join(os.tmpdir(), "warren-"));
  try {
    return await use(top);
  } finally {
    fs.rmSync(top, { recursive: true });
  }
}

test("a directory goes through a tar and back", () =>
  inTemporary(async (top) => {
    const long = "long".repeat(40);
    fs.mkdirSync(`${top}/source/sub/deep`, { recursive: true });
    fs.writeFileSync(`${top}/source/sub/file`, "x".repeat(100_000));
    fs.writeFileSync(`${top}/source/run.sh`, "#!/bin/sh\n", { mode: 0o755 });
    fs.writeFileSync(`${top}/source/${long}`, "ü");
    fs.writeFileSync(`${top}/source/ünï`, "");
    fs.symlinkSync("sub/file", `${top}/source/link`);
    fs.writeFileSync(`${top}/source/skipped`, "no");
    const done = await unpack(tarOfDirectory(`${top}/source`, (name) => name !== "skipped"), `${top}/copy`);
    assert.deepEqual(done, { files: 4, bytes: 100_012, leftOut: [] });
    assert.equal(fs.readFileSync(`${top}/copy/sub/file`).length, 100_000);
    assert.equal(fs.readFileSync(`${top}/copy/${long}`, "utf8"), "ü");
    assert.ok(fs.existsSync(`${top}/copy/ünï`) && !fs.existsSync(`${top}/copy/skipped`));
    assert.equal(fs.readlinkSync(`${top}/copy/link`), "sub/file");
    assert.equal(fs.statSync(`${top}/copy/run.sh`).mode & 0o777, 0o755);
  }));

test("a hostile archive writes nothing outside", () =>
  inTemporary(async (top) => {
    fs.writeFileSync(`${top}/outside`, "mine");
    const encode = (text) => new TextEncoder().encode(text);
    const parts = [];
    const add = (name, type, target, text = "") => {
      const data = encode(text);
      parts.push(...tar.header({ name, type, target, size: data.length, mode: 0o6777 }), data, tar.padding(data.length));
    };
    add("../outside", "file", "", "evil");
    add("up", "symlink", "..");
    add("up/outside", "file", "", "evil");
    add("abs", "symlink", `${top}/outside`);
    add("abs", "file", "", "good");
    add("hard", "link", "../outside");
    add("in", "symlink", "abs");
    add("in", "file", "", "own");
    parts.push(tar.trailer());
    const done = await unpack(Readable.from(parts), `${top}/top`);
    assert.equal(fs.readFileSync(`${top}/outside`, "utf8"), "mine");
    assert.deepEqual(done.leftOut.sort(), ["../outside", "abs", "hard", "up"]);
    assert.equal(fs.readFileSync(`${top}/top/abs`, "utf8"), "good");
    assert.equal(fs.statSync(`${top}/top/abs`).mode & 0o7022, 0);
    await assert.rejects(unpack(Readable.from([new Uint8Array(700).fill(7)]), `${top}/bad`));
    await assert.rejects(unpack(Readable.from(parts.slice(0, 1)), `${top}/cut`));
  }));
