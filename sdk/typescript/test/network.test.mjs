// Network, volumes and secrets, against a daemon. Nothing here leaves the machine: what is asked for is denied.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as warren from "../dist/index.js";

const client = new warren.Client();

async function entries(box, wanted) {
  for (;;) {
    const found = (await box.networkLog()).filter(wanted);
    if (found.length) return found;
    await new Promise((r) => setTimeout(r, 20));
  }
}

test("a sandbox reaches nothing unless it says so", async () => {
  await client.sandboxes.with({ image: "tiny" }, async (box) => {
    assert.equal(box.info.network, "none");
    assert.deepEqual(await box.networkLog(), []);
  });
});

test("a network is changed while it runs", async () => {
  await client.sandboxes.with({ image: "tiny", network: "agents" }, async (box) => {
    assert.equal(box.info.network, "agents");
    const rules = ["allow good.test 443", "deny *"];
    assert.deepEqual((await box.setNetwork({ rules })).network, { rules });
    assert.deepEqual((await client.sandboxes.get(box.id)).info.network, { rules });
  });
});

test("what was denied is told", async () => {
  await client.sandboxes.with({ image: "base", network: "open" }, async (box) => {
    await box.run(["curl", "-s", "--max-time", "20", "http://10.9.8.7/"]);
    const [entry] = await entries(box, (e) => e.address === "10.9.8.7");
    assert.deepEqual([entry.verdict, entry.reason, entry.port], ["denied", "reserved_address", 80]);
    assert.deepEqual((await box.networkLog({ after: entry.number })).filter((e) => e.number <= entry.number), []);
  });
});

test("limits and a proxy", async () => {
  const network = { preset: "open", proxy: "socks5://me@proxy.example.com:1080" };
  await client.sandboxes.with({ image: "tiny", network, network_limits: { connections: 7 } }, async (box) => {
    assert.deepEqual([box.info.network, box.info.network_limits.connections], [network, 7]);
  });
});

test("a port is reached from outside", async () => {
  await client.sandboxes.with({ image: "base", preview: "private" }, async (box) => {
    await box.spawn(["python3", "-m", "http.server", "8123"]);
    let ports = [];
    while (!ports.length) ports = await box.ports();
    assert.equal(ports[0].port, 8123);
    assert.ok(ports[0].url.includes(`://8123-${box.id}.`));
    const token = await box.previewToken({ port: 8123, expires_s: 60, data: { user: "ann" } });
    assert.ok(token.url.includes(token.token));
    assert.deepEqual((await box.previewTokens()).map((t) => [t.id, t.token]), [[token.id, undefined]]);
    await box.revokePreviewToken(token.id);
    assert.deepEqual(await box.previewTokens(), []);
    assert.equal((await client.names.add("ts.example.com", box.id, 8123)).sandbox, box.id);
    assert.ok((await client.names.list()).some((n) => n.name === "ts.example.com"));
    await client.names.delete("ts.example.com");
    await assert.rejects(client.names.get("ts.example.com"), warren.NotFound);
  });
});

test("what it did is on one page", async () => {
  await client.sandboxes.with({ image: "tiny" }, async (box) => {
    await box.run("echo x > /root/new", { check: true });
    assert.ok((await box.changes()).changes.some((c) => c.path === "/root/new"));
    assert.equal((await box.blast()).network, "none");
    assert.equal((await box.networkUsage()).egress.connections, 0);
  });
});

test("without object storage nothing is archived", async () => {
  await client.sandboxes.with({ image: "tiny" }, async (box) => {
    const { id } = await box.checkpoint();
    // One after the other: a call that fails before anybody awaits it ends the process.
    for (const call of [() => client.checkpoints.archive(id), () => client.checkpoints.fetch(id), () => box.archive()]) {
      await assert.rejects(call, { code: "archive_unavailable" });
    }
    await client.checkpoints.delete(id);
  });
});

test("rules that are none are refused", async () => {
  await assert.rejects(client.create({ image: "tiny", network: { rules: ["perhaps"] } }),
    (e) => e instanceof warren.InvalidRequest && e.code === "invalid_network");
});

test("volumes outlive sandboxes, and have files of their own", async () => {
  const volume = await client.volumes.create({ name: "ts-volume", size_mb: 64 });
  await client.sandboxes.with({ image: "tiny", volumes: [{ volume: "ts-volume", path: "/data" }] }, async (box) => {
    await box.run("echo kept > /data/file", { check: true });
    assert.equal((await volume.refresh()).sandboxes, 1);
    await assert.rejects(volume.delete(), warren.Conflict);
  });
  assert.equal(await volume.files.readText("/file"), "kept\n");
  assert.equal((await volume.resize(128)).size_mb, 128);
  assert.ok((await client.volumes.list()).some((v) => v.name === "ts-volume"));
  assert.equal((await client.volumes.get("ts-volume")).id, volume.id);
  while ((await volume.refresh()).sandboxes) await new Promise((r) => setTimeout(r, 20));
  await client.volumes.delete("ts-volume");
  await assert.rejects(client.volumes.get("ts-volume"), warren.NotFound);
});

test("secrets go in and do not come out", async () => {
  const made = await client.secrets.create({ name: "ts-secret", value: "the value", metadata: { for: "tests" } });
  assert.deepEqual([made.version, made.metadata], [1, { for: "tests" }]);
  assert.equal((await client.secrets.update("ts-secret", { value: "another" })).version, 2);
  const shown = JSON.stringify([await client.secrets.get("ts-secret"), await client.secrets.list()]);
  assert.ok(shown.includes("ts-secret") && !shown.includes("another"));
  await client.secrets.delete("ts-secret");
  await assert.rejects(client.secrets.get("ts-secret"), warren.NotFound);
});

test("requests carry what bindings say", async () => {
  await client.secrets.create({ name: "sdk-bound-ts", value: "the value" });
  try {
    const bindings = ["sdk-bound-ts@api.bound.test/v1/* name=api transparent=no"];
    await client.sandboxes.with({ image: "tiny", bindings }, async (box) => {
      assert.equal(box.info.bindings[0].path, "/v1/*");
      const told = (await box.setBindings([{ secret: "sdk-bound-ts", host: "api.bound.test", as: "basic", user: "me" }])).bindings;
      assert.deepEqual((await box.setBindings(told)).bindings, told);
      await assert.rejects(box.setBindings(["sdk-bound-ts@10.0.0.1"]), { code: "invalid_binding" });
      assert.deepEqual((await box.setBindings([])).bindings, []);
    });
  } finally {
    await client.secrets.delete("sdk-bound-ts");
  }
});
