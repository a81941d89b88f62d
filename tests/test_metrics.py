"""What an operator's monitoring reads."""
import re


def metrics(api):
    reply = api.with_key(None).call("GET", "/metrics")
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/plain")
    values = {}
    for line in reply.body.decode().splitlines():
        if line and not line.startswith("#"):
            name, value = re.fullmatch(r"([a-zA-Z_:][\w:]*(?:\{[^}]*\})?) ([-+\d.eEinfNa]+)", line).groups()
            values[name] = float(value)
    return reply.body.decode(), values


def test_the_text_is_well_formed(api, tiny):
    text, values = metrics(api)
    assert values and all(name.startswith(("warren_", "process_")) for name in values)
    for name in {re.split(r"[{]", n)[0] for n in values}:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert f"# TYPE {name} " in text or f"# TYPE {base} " in text, name
        assert f"# HELP {name} " in text or f"# HELP {base} " in text, name


def test_counters_count(api):
    def total(word):
        return sum(v for n, v in metrics(api)[1].items() if word in n and "fail" not in n)
    creates, execs = total("creat"), total("exec")
    who = api.create(image="tiny")["id"]
    api.exec(who, ["true"])
    api.delete(who)
    assert total("creat") > creates and total("exec") > execs


def test_health(api, tiny):
    health = api.with_key(None).ok("GET", "/v1/health")
    assert health["status"] == "ok" and health["keeper"] is True and health["sandboxes"] >= 1
    assert re.match(r"\d+\.\d+", health["version"])


def test_host_says_what_this_machine_offers(api):
    host = api.ok("GET", "/v1/host")
    assert isinstance(host, dict) and host


def test_images_are_listed(api):
    images = {i["name"]: i for i in api.ok("GET", "/v1/images")["images"]}
    assert {"base", "tiny"} <= set(images)
    for image in images.values():
        assert image["digest"].startswith("sha256:") and image["size_bytes"] > 0 and image["created_at"]


def test_an_image_in_use_cannot_be_removed(api, tiny_tar):
    api.import_image("in-use", tiny_tar)
    who = api.create(image="in-use")["id"]
    api.refused(409, "image_in_use", "DELETE", "/v1/images/in-use")
    api.delete(who)
    api.ok("DELETE", "/v1/images/in-use")
    api.refused(404, "image_not_found", "POST", "/v1/sandboxes", {"image": "in-use"})


def test_replacing_an_image_leaves_its_sandboxes_alone(api, tiny_tar, tmp_path):
    import io
    import tarfile
    api.import_image("changing", tiny_tar)
    old = api.create(image="changing")["id"]
    second = tmp_path / "second.tar"
    second.write_bytes(tiny_tar.read_bytes())
    with tarfile.open(second, "a") as tar:
        info = tarfile.TarInfo("etc/second")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"yes"))
    api.import_image("changing", second)
    new = api.create(image="changing")["id"]
    assert api.exec(old, ["cat", "/etc/second"])["exit_code"] != 0
    assert api.out(new, ["cat", "/etc/second"]) == "yes"
    api.ok("POST", f"/v1/sandboxes/{old}/stop")
    api.ok("POST", f"/v1/sandboxes/{old}/start")
    assert api.out(old, ["echo", "old"]) == "old\n"
    api.delete(old)
    api.delete(new)
    api.ok("DELETE", "/v1/images/changing")


def test_compressed_images(api, tiny_tar):
    import gzip
    import lzma
    import subprocess
    data = tiny_tar.read_bytes()
    zst = subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True).stdout
    for name, body in (("gz", gzip.compress(data, 1)), ("xz", lzma.compress(data, preset=0)), ("zst", zst)):
        api.ok("PUT", f"/v1/images/packed-{name}", body)
        who = api.create(image=f"packed-{name}")["id"]
        assert api.out(who, ["echo", name]) == f"{name}\n"
        api.delete(who)
        api.ok("DELETE", f"/v1/images/packed-{name}")
