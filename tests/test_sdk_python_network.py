"""The Python client's network, volumes and secrets against a real daemon. Nothing here leaves the machine."""
import pytest

from harness import until
from sdk_kit import client, warren  # noqa: F401 - a fixture


def test_a_network_is_changed_while_it_runs(client):
    with client.create("tiny") as box:
        assert box.info.network == "none" and box.network_log() == []
        assert box.set_network("agents").network == "agents"
        rules = {"rules": ["allow good.test 443", "deny *"]}
        box.set_network(rules)
        assert client.sandboxes.get(box.id).info.network == rules
    with pytest.raises(warren.InvalidRequest) as refused:
        client.create("tiny", network={"rules": ["perhaps"]})
    assert refused.value.code == "invalid_network"


def test_what_was_denied_is_told(client):
    with client.create("base", network="open") as box:
        box.run(["curl", "-s", "--max-time", "20", "http://10.9.8.7/"])
        entry, = until(lambda: [e for e in box.network_log() if e.address == "10.9.8.7"], "the entry")
        assert entry.denied and (entry.reason, entry.port, entry.kind) == ("reserved_address", 80, "connection")
        assert entry.time is not None and entry.program and entry.program.endswith("/curl") and not entry.open
        assert all(e.number > entry.number for e in box.network_log(after=entry.number))


def test_limits_and_a_proxy(client):
    proxied = {"preset": "open", "proxy": "socks5://me@proxy.example.com:1080"}
    with client.create("tiny", network=proxied, network_limits={"connections": 7}) as box:
        assert box.info.network == proxied and box.info.network_limits["connections"] == 7
        assert box.update(network_limits=None).network_limits["connections"] is None


def test_a_port_is_reached_from_outside(client):
    with client.create("base", preview="private") as box:
        box.spawn(["python3", "-m", "http.server", "8123", "--bind", "127.0.0.1"])
        port, = until(box.ports, "the port")
        assert (port.port, port.address) == (8123, "127.0.0.1") and f"://8123-{box.id}." in port.url
        token = box.preview_token(8123, expires_s=60, data={"user": "ann"})
        assert token.token and token.token in token.url and token.token not in repr(token)
        assert [(t.id, t.port, t.data, t.token) for t in box.preview_tokens()] == [(token.id, 8123, {"user": "ann"}, None)]
        box.revoke_preview_token(token.id)
        assert box.preview_tokens() == []
        assert client.names.add("sdk.example.com", box.id, 8123).sandbox == box.id
        assert (client.names.get("sdk.example.com").port, [n.name for n in client.names.list()]) == (8123, ["sdk.example.com"])
        client.names.delete("sdk.example.com")
        assert client.names.list() == []


def test_what_it_did_is_on_one_page(client):
    with client.create("base") as box:
        box.run("echo x > /root/new", check=True)
        assert "/root/new" in [c["path"] for c in box.changes()["changes"]]
        page = box.blast()
        assert page["network"] == "none" and page["files"]["added"] >= 1
        assert box.network_usage()["egress"]["connections"] == 0


def test_a_template_has_a_network(client):
    template = client.templates.create("sdk-net", "tiny", network={"rules": ["allow good.test"]}, preview="private")
    try:
        assert template.network == {"rules": ["allow good.test"]}
        with client.sandboxes.create(template="sdk-net") as box:
            assert (box.info.network, box.info.preview) == (template.network, "private")
            assert box.update(preview="public", wake="never").preview == "public"
            assert box.info.wake == "never"
    finally:
        client.templates.delete("sdk-net")


def test_volumes_outlive_sandboxes(client):
    volume = client.volumes.create("sdk-volume", size_mb=64)
    assert (volume.name, volume.info.size_mb) == ("sdk-volume", 64)
    try:
        with client.create("tiny", volumes={"/data": "sdk-volume", "/again": "sdk-volume:ro"}) as box:
            assert [(v["path"], v["read_only"]) for v in box.info.volumes] == [("/again", True), ("/data", False)]
            box.run("echo kept > /data/file; cat /again/file", check=True)
            assert not box.run("echo >> /again/file").ok
            with pytest.raises(warren.Conflict):
                volume.delete()
        assert volume.files.read_text("/file") == "kept\n"
        assert volume.resize(128).size_mb == 128
        kept = volume.checkpoint("kept", comment="as it was")
        assert [(c.id, c.name, c.comment) for c in volume.checkpoints()] == [(kept.id, "kept", "as it was")]
        volume.files.write("/file", "changed\n")
        copy = volume.fork("kept")
        assert copy.files.read_text("/file") == "kept\n"
        copy.delete()
        volume.restore("kept")
        assert volume.files.read_text("/file") == "kept\n"
        volume.forget("kept")
        assert volume.checkpoints() == []
        assert "sdk-volume" in [v.name for v in client.volumes.list()]
        assert client.volumes.get("sdk-volume").id == volume.id
        with pytest.raises(ValueError):
            client.create("tiny", volumes={"/data": "sdk-volume:rw"})
    finally:
        until(lambda: not volume.refresh().sandboxes, "the sandbox's end")
        client.volumes.delete("sdk-volume")
    with pytest.raises(warren.NotFound):
        client.volumes.get("sdk-volume")


def test_secrets_go_in_and_do_not_come_out(client):
    made = client.secrets.create("sdk-secret", "the value", metadata={"for": "tests"})
    try:
        assert (made.version, made.metadata) == (1, {"for": "tests"})
        assert client.secrets.update("sdk-secret", value="another").version == 2
        assert "another" not in repr([client.secrets.get("sdk-secret").raw, client.secrets.list()])
        assert "sdk-secret" in [s.name for s in client.secrets.list()]
    finally:
        client.secrets.delete("sdk-secret")
    with pytest.raises(warren.NotFound):
        client.secrets.get("sdk-secret")


def test_requests_carry_what_bindings_say(client):
    client.secrets.create("sdk-bound", "the value")
    try:
        with client.create("tiny", bindings=["sdk-bound@api.bound.test/v1/* name=api transparent=no"]) as box:
            assert box.info.bindings[0]["secret"] == "sdk-bound" and box.info.bindings[0]["path"] == "/v1/*"
            bound = {"secret": "sdk-bound", "host": "api.bound.test", "as": "header", "header": "x-key", "name": "api", "transparent": False}
            told = box.set_bindings([bound]).bindings
            assert bound.items() <= told[0].items() and box.set_bindings(told).bindings == told
            with pytest.raises(warren.InvalidRequest) as refused:
                box.set_bindings(["sdk-bound@10.0.0.1"])
            assert refused.value.code == "invalid_binding"
            with pytest.raises(warren.NotFound):
                box.set_bindings(["another@api.bound.test"])
            assert box.set_bindings([]).bindings == []
    finally:
        client.secrets.delete("sdk-bound")
