"""The Python client's teams, usage, templates, images and logs against a real daemon."""
import datetime
import io
import pathlib
import tarfile

import pytest

from harness import until
from sdk_kit import client, warren  # noqa: F401 - a fixture
from warren_sandbox.client import Images, Keys, Teams, Templates


def test_teams_and_their_keys(client, daemon):
    team = client.teams.create("sdk-team", {"sandboxes": 1})
    assert team.quotas["sandboxes"] == 1 and team.in_use["sandboxes"] == 0
    try:
        assert "sdk-team" in [t.name for t in client.teams.list()]
        assert client.teams.update("sdk-team", {"sandboxes": 0}).quotas["sandboxes"] == 0
        key = client.keys.create("member", team="sdk-team", role="member")
        assert (key.team, key.role) == ("sdk-team", "member")
        member = warren.Client(daemon.url, key.key)
        assert member.teams.get("sdk-team").quotas["sandboxes"] == 0
        with pytest.raises(warren.Forbidden):
            member.teams.create("another")
        for one in (member, warren.Client(daemon.url, daemon.key, team="sdk-team")):
            with pytest.raises(warren.ApiError) as refused:
                one.create("tiny")
            assert refused.value.code == "quota_exceeded"
        client.keys.delete(key.id)
    finally:
        client.teams.delete("sdk-team")
    with pytest.raises(warren.NotFound):
        client.teams.get("sdk-team")


def test_usage(client):
    with client.create("tiny") as box:
        box.run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", check=True)
        box.stop()
        now = datetime.datetime.now(datetime.timezone.utc)
        hour = datetime.timedelta(hours=1)
        usage = until(lambda: (lambda u: u if u.total["cpu_seconds"] > 0 else None)(
            client.usage(now - hour, now + hour, sandbox=box.id)), "the cpu that was used")
        assert [s["sandbox"] for s in usage.sandboxes] == [box.id]
        assert client.usage(now - hour, now + hour, step="hour").steps
        assert client.usage().team


def test_templates(client):
    template = client.templates.create("sdk-web", "tiny", start_command="touch /root/up; sleep 1000",
                                       ready={"command": "test -e /root/up"}, env={"T": "1"},
                                       memory_mb=64)
    assert template.name == "sdk-web" and template.memory_mb == 64
    try:
        assert "sdk-web" in [t.name for t in client.templates.list()]
        assert client.templates.get("sdk-web").env == {"T": "1"}
        with client.sandboxes.create(template="sdk-web") as box:
            assert box.run("echo $T; ls /root/up").stdout == "1\n/root/up\n"
            assert [p.label for p in box.processes.list() if p.process == 1] == ["start"]
    finally:
        client.templates.delete("sdk-web")
    with pytest.raises(warren.NotFound):
        client.templates.get("sdk-web")


def test_a_template_that_is_never_ready_says_why(client):
    client.templates.create("sdk-broken", "tiny", start_command="echo cannot find it >&2; exit 1",
                            ready={"command": "false"}, ready_timeout_s=5)
    try:
        with pytest.raises(warren.Failed) as failed:
            client.sandboxes.create(template="sdk-broken")
        assert failed.value.code == "template_not_ready" and "cannot find it" in str(failed.value)
    finally:
        client.templates.delete("sdk-broken")


def test_images_in_full(client, tiny_tar):
    with open(tiny_tar, "rb") as file:
        client.images.put("sdk-img", file, public=True)
    names = ["sdk-img"]
    try:
        image = client.images.get("sdk-img")
        assert image.public and image.layers == 1 and len(image.layer_list) == 1
        assert len(client.images.history("sdk-img")) >= 1
        assert client.images.tag("sdk-img", "sdk-img:two").digest == image.digest
        names.append("sdk-img:two")
        assert len(client.images.list(name="sdk-img")) == 2
        with client.create("sdk-img") as box:
            box.run("echo more > /root/more", check=True)
            made = box.commit("sdk-more", env={"MADE": "yes"})
            names.append("sdk-more")
            assert made.layers == 2
        with client.create("sdk-more") as box:
            assert box.run("cat /root/more; echo $MADE").stdout == "more\nyes\n"
        with client.images.export("sdk-more") as stream:
            packed = io.BytesIO(stream.read())
        with tarfile.open(fileobj=packed) as tar:
            assert "oci-layout" in [n.lstrip("./") for n in tar.getnames()]
        packed.seek(0)
        client.images.put("sdk-back", packed)
        names.append("sdk-back")
        with client.create("sdk-back") as box:
            assert box.run("cat /root/more").stdout == "more\n"
    finally:
        until(lambda: not client.sandboxes.list(state="deleting"), "the sandboxes' end")
        for name in names:
            client.images.delete(name)
    assert client.images.prune()["freed_bytes"] >= 0


def test_building_an_image(client, tmp_path):
    (tmp_path / "Dockerfile").write_text(
        "FROM tiny\nARG WHO=nobody\nCOPY file /root/file\nRUN echo $WHO >> /root/file\nENV A=b\n")
    (tmp_path / "file").write_text("copied\n")
    steps = []
    with client.images.build("sdk-built", tmp_path, args={"WHO": "me"}) as lines:
        for line in lines:
            steps.append(line)
    assert steps[-1]["type"] == "image" and any(s["type"] == "step" for s in steps)
    assert client.images.result(client.images.build("sdk-built", tmp_path, args={"WHO": "me"})).name
    with client.create("sdk-built") as box:
        assert box.run("cat /root/file; echo $A").stdout == "copied\nme\nb\n"
    (tmp_path / "Dockerfile").write_text("FROM tiny\nRUN exit 3\n")
    with pytest.raises(warren.ApiError) as failed:
        client.images.result(client.images.build("sdk-built", tmp_path, no_cache=True))
    assert failed.value.code == "build_failed"
    until(lambda: not client.sandboxes.list(state="deleting"), "the sandbox's end")
    client.images.delete("sdk-built")


def test_a_registry_that_is_not_there(client):
    for lines in (lambda: client.images.pull("127.0.0.1:1/nothing", insecure=True),
                  lambda: client.images.push("tiny", image="127.0.0.1:1/nothing", insecure=True)):
        with pytest.raises(warren.ApiError) as failed:
            client.images.result(lines())
        assert failed.value.code == "registry_failed"


def test_logs(client):
    with client.create("tiny") as box:
        process = box.processes.start("echo to the log")
        process.wait()
        with box.logs() as lines:
            assert any("to the log" in line.get("text", "") for line in lines)
        with client.logs(sandbox=box.id) as lines:
            assert [line["sandbox"] for line in lines if line["message"]] != []
    assert client.openapi()["openapi"].startswith("3.")


def test_every_method_is_here():
    text = pathlib.Path(__file__).read_text()
    for noun in (Images, Keys, Teams, Templates):
        names = [n for n in vars(noun) if not n.startswith("_") and (noun, n) != (Keys, "list")]
        assert [n for n in names if f".{n}(" not in text] == [], noun
