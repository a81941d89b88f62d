"""What an operator's monitoring reads."""
import os
import re

from harness import until


LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\n]|\\\\[\\\\"n])*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({LABEL}(?:,{LABEL})*)?\}})? ([-+]?[0-9.]+(?:e[-+]?\d+)?|[-+]?Inf|NaN)")


def parse(text):
    """The exposition format, strictly: families in one piece, samples of their type, no sample twice."""
    assert text.endswith("\n")
    families, samples, family = {}, {}, None
    for line in text.splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if head:
            kind, name, rest = head.groups()
            if kind == "HELP":
                assert name not in families, f"{name} comes twice"
                family = families[name] = {"name": name, "help": rest}
            else:
                assert name == family["name"] and rest in ("counter", "gauge", "histogram")
                family["type"] = rest
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        labels = tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
        suffix = name[len(family["name"]):]
        assert name.startswith(family["name"]) and "type" in family, line
        assert suffix in (("_bucket", "_sum", "_count") if family["type"] == "histogram" else ("",)), line
        assert (family["type"] == "counter") == family["name"].endswith("_total"), line
        assert (name, labels) not in samples, f"{line} comes twice"
        assert family["type"] == "gauge" or float(value) >= 0
        samples[name, labels] = float(value)
    for (name, labels), value in samples.items():
        if name.endswith("_bucket") and dict(labels)["le"] == "+Inf":
            rest = tuple(x for x in labels if x[0] != "le")
            base = name[:-len("_bucket")]
            assert samples[base + "_count", rest] == value and (base + "_sum", rest) in samples
            row = sorted((float(dict(l)["le"]), v) for (n, l), v in samples.items()
                         if n == name and tuple(x for x in l if x[0] != "le") == rest)
            assert [v for _, v in row] == sorted(v for _, v in row), f"{name}{rest} is not cumulative"
    return families, samples


def metrics(api):
    reply = api.with_key(None).call("GET", "/metrics")
    assert reply.status == 200 and reply.headers["Content-Type"].startswith("text/plain")
    return parse(reply.body.decode())[1]


def value(api, name, **labels):
    return metrics(api).get((name, tuple(sorted(labels.items()))), 0)


def test_the_text_is_well_formed(api, tiny):
    samples = metrics(api)
    assert samples and all(name.startswith("warren_") for name, _ in samples)
    assert samples["warren_sandboxes", (("state", "running"),)] >= 1
    assert samples["warren_pool_size", ()] >= 0


def test_the_machine_is_measured(api, tiny):
    """Read every few seconds; the first time before the API answers, when nothing is stored yet."""
    until(lambda: value(api, "warren_storage_used_bytes", kind="data") > 0, "a look at what the image takes")
    samples = metrics(api)
    for area in ("pool", "data"):
        size, free, reserve = (samples[f"warren_disk_{what}_bytes", (("area", area),)] for what in ("size", "free", "reserve"))
        assert size >= free > 0 and size > reserve > 0, area
    assert samples["warren_storage_allocated_bytes", (("kind", "data"),)] >= samples["warren_storage_used_bytes", (("kind", "data"),)] > 0
    assert samples["warren_host_memory_size_bytes", ()] > samples["warren_host_memory_available_bytes", ()] > 0
    assert samples["warren_host_cpus", ()] == os.cpu_count()
    before = samples["warren_sandboxes_memory_promised_bytes", ()]
    who = api.create(image="tiny", memory_mb=256)["id"]
    assert value(api, "warren_sandboxes_memory_promised_bytes") == before + (256 << 20)
    until(lambda: value(api, "warren_sandboxes_memory_used_bytes") > 0, "a look at it")
    api.delete(who)
    assert samples["warren_keeper_up", ()] == 1 and samples["warren_images", ()] >= 2
    assert samples["warren_process_max_fds", ()] > samples["warren_process_open_fds", ()] > 0
    assert samples["warren_process_resident_memory_bytes", ()] > 0 and samples["warren_process_cpu_seconds_total", ()] > 0
    assert any(name == "warren_build_info" for name, _ in samples)


def test_operations_are_timed(api):
    before = {o: value(api, "warren_operation_seconds_count", dialect="native", operation=o)
              for o in ("create", "exec", "delete", "stop", "start")}
    who = api.create(image="tiny")["id"]
    api.exec(who, ["true"])
    api.ok("POST", f"/v1/sandboxes/{who}/stop")
    api.ok("POST", f"/v1/sandboxes/{who}/start")
    api.delete(who)
    for operation, count in before.items():
        until(lambda: value(api, "warren_operation_seconds_count", dialect="native", operation=operation) == count + 1,
              operation)
    assert value(api, "warren_operation_seconds_sum", dialect="native", operation="create") > 0
    assert value(api, "warren_http_request_seconds_count", dialect="native", method="POST",
                 route="/v1/sandboxes/{id}/exec") >= 1


def test_each_family_of_clients_is_counted(api, daemon):
    def counted(dialect):
        return (value(api, "warren_http_requests_total", dialect=dialect, **{"class": "2xx"}),
                value(api, "warren_operation_seconds_count", dialect=dialect, operation="create"))
    native, e2b = counted("native"), counted("e2b")
    key = {"X-API-Key": daemon.key}
    made = api.call("POST", "/e2b/v2/sandboxes", {"templateID": "base"}, key)
    assert made.status == 201
    assert api.call("DELETE", f"/e2b/sandboxes/{made.json['sandboxID']}", headers=key).status == 204
    until(lambda: counted("e2b") == (e2b[0] + 2, e2b[1] + 1), "both of them")
    assert counted("native")[1] == native[1]


def test_failures_are_counted_by_code(api):
    def count(code):
        return value(api, "warren_errors_total", code=code)
    gone, odd = count("sandbox_not_found"), count("invalid_json")
    api.refused(404, "sandbox_not_found", "GET", "/v1/sandboxes/nope")
    api.refused(400, "invalid_json", "POST", "/v1/sandboxes", "{")
    assert count("sandbox_not_found") == gone + 1 and count("invalid_json") == odd + 1
    api.call("GET", "/v1/\"},x{y=\"z")
    metrics(api)  # nothing of a request becomes a label


def test_a_keeper_s_restart_is_counted(fresh):
    assert value(fresh.api, "warren_keeper_restarts_total") == 0
    fresh.kill_keeper()
    until(lambda: value(fresh.api, "warren_keeper_restarts_total") >= 1, "the count")
    fresh.wait_healthy()


def test_counters_count(api):
    def total(word):
        return sum(v for (n, _), v in metrics(api).items() if word in n and "fail" not in n)
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
    assert (host["kernel"], host["machine"], host["cpus"]) == (os.uname().release, os.uname().machine, os.cpu_count())
    assert host["memory_bytes"] >= host["memory_free_bytes"] > 0 and host["pool_total_bytes"] >= host["pool_free_bytes"] > 0
    features = host["features"]
    assert {"memory_limit", "pids_limit"} <= set(features) and features["memory_limit"] and features["pids_limit"]


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
