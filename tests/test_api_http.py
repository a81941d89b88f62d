"""What every answer keeps to, whatever it is about: ids, compression, origins, rates, logs."""
import gzip
import json
import re

import harness
from harness import until


def test_a_client_s_own_request_id_is_taken_over(api):
    for mine in ("a", "my-id_1.2", "x" * 64):
        reply = api.call("GET", "/v1/sandboxes", headers={"X-Request-Id": mine})
        assert reply.headers["X-Request-Id"] == mine
    error = api.call("GET", "/v1/sandboxes/nope", headers={"X-Request-Id": "mine"}).json["error"]
    assert error["request_id"] == "mine"


def test_an_odd_request_id_is_replaced(api):
    for odd in ("", "x" * 65, "a b", "a=b", "ä".encode(), 'a"', "a,b"):
        reply = api.call("GET", "/v1/health", headers={"X-Request-Id": odd})
        assert re.fullmatch(r"r[0-9a-f]+", reply.headers["X-Request-Id"]), odd
    ids = {api.call("GET", "/v1/health").headers["X-Request-Id"] for _ in range(5)}
    assert len(ids) == 5


def test_large_answers_are_compressed_for_those_who_ask(api, make):
    who = make(image="tiny", metadata={f"k{i}": "v" * 50 for i in range(100)})["id"]
    plain = api.call("GET", f"/v1/sandboxes/{who}")
    assert "Content-Encoding" not in plain.headers and "Accept-Encoding" in plain.headers["Vary"]
    packed = api.call("GET", f"/v1/sandboxes/{who}", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["Content-Encoding"] == "gzip" and "Accept-Encoding" in packed.headers["Vary"]
    assert len(packed.body) < len(plain.body) / 2
    assert int(packed.headers["Content-Length"]) == len(packed.body)
    unpacked = json.loads(gzip.decompress(packed.body))
    assert unpacked["metadata"] == plain.json["metadata"]
    refused = api.call("GET", f"/v1/sandboxes/{who}", headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers
    small = api.call("GET", "/v1/health", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in small.headers
    text = api.call("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
    assert gzip.decompress(text.body).startswith(b"# HELP")


def test_a_page_of_any_origin_may_ask(api, tiny):
    nobody = api.with_key(None)
    ask = {"Origin": "https://app.example", "Access-Control-Request-Method": "PATCH",
           "Access-Control-Request-Headers": "authorization"}
    pre = nobody.call("OPTIONS", f"/v1/sandboxes/{tiny}", headers=ask)
    assert pre.status == 204 and pre.body == b""
    assert pre.headers["Access-Control-Allow-Origin"] == "*"
    assert {"GET", "PATCH", "DELETE"} <= set(pre.headers["Access-Control-Allow-Methods"].split(", "))
    allowed = pre.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert {"authorization", "content-type", "idempotency-key", "if-match"} <= set(allowed)
    assert int(pre.headers["Access-Control-Max-Age"]) > 0
    got = api.call("GET", f"/v1/sandboxes/{tiny}", headers={"Origin": "https://app.example"})
    assert got.headers["Access-Control-Allow-Origin"] == "*"
    exposed = got.headers["Access-Control-Expose-Headers"]
    assert "X-Request-Id" in exposed and "ETag" in exposed and "Retry-After" in exposed
    refused = nobody.call("GET", "/v1/sandboxes", headers={"Origin": "https://app.example"})
    assert refused.status == 401 and refused.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Origin" not in api.call("GET", "/v1/health").headers
    assert nobody.call("OPTIONS", "/v1/nothing", headers=ask).status == 404


def test_a_key_has_a_rate(tiny_tar):
    d = harness.Daemon("--rate-limit", "1", "--rate-burst", "20")
    try:
        first = d.api.call("GET", "/v1/sandboxes")
        assert first.status == 200 and first.headers["RateLimit-Limit"] == "20"
        assert int(first.headers["RateLimit-Remaining"]) <= 19
        assert int(first.headers["RateLimit-Reset"]) >= 1
        second_key = d.admin.ok("POST", "/v1/keys", {"name": "second"})["key"]

        def refused():
            reply = d.api.call("GET", "/v1/sandboxes")
            return reply if reply.status == 429 else None
        reply = until(refused, "the limit")
        assert reply.code == "too_many_requests" and int(reply.headers["Retry-After"]) >= 1
        assert reply.headers["RateLimit-Remaining"] == "0"
        assert d.api.with_key(second_key).call("GET", "/v1/sandboxes").status == 200
        for _ in range(40):
            assert d.admin.call("GET", "/v1/sandboxes").status == 200
        text = d.admin.call("GET", "/metrics").body.decode()
        assert int(re.search(r"^warren_http_rate_limited_total (\d+)$", text, re.M)[1]) >= 1
        assert 'warren_errors_total{code="too_many_requests"} ' in text
        until(lambda: d.api.call("GET", "/v1/sandboxes").status == 200, "the next token")
    finally:
        d.close()


def test_origins_can_be_listed_and_the_log_be_json():
    d = harness.Daemon("--cors-origins", "https://a.example,http://b.example:8080",
                       "--log-format", "json", "--log-level", "debug", "--rate-limit", "0")
    try:
        reply = d.api.call("GET", "/v1/sandboxes",
                           headers={"Origin": "http://b.example:8080", "X-Request-Id": "find-me"})
        assert reply.headers["Access-Control-Allow-Origin"] == "http://b.example:8080"
        assert "Origin" in ", ".join(reply.headers.get_all("Vary"))
        assert "RateLimit-Limit" not in reply.headers
        other = d.api.call("GET", "/v1/health", headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in other.headers
        until(lambda: "find-me" in d.log(), "the line of the request")
        lines = [json.loads(line) for line in (d.dir / "log").read_text().splitlines()
                 if line.startswith("{")]
        mine = [line for line in lines if line.get("req") == "find-me"]
        assert mine and mine[-1]["module"] == "http" and mine[-1]["status"] == "200"
        assert all(line["time"] and line["level"] and "message" in line for line in lines)
        assert any(line["module"] == "storage" for line in lines)  # the keeper's, too
        ready = next(line for line in lines if line["message"] == "ready" and "listen" in line)
        assert ready["listen"].endswith(str(d.port))
    finally:
        d.close()


def test_bad_options_are_explained(build_dir, run):
    for flags in (["--rate-limit", "x"], ["--rate-burst", "0"], ["--log-format", "xml"],
                  ["--cors-origins", "example.com"], ["--rate-limit", "-1"]):
        result = run(build_dir / "warrend", *flags)
        assert result.returncode == 2 and flags[0] in result.stderr
    routes = run(build_dir / "warrend", "--routes").stdout.splitlines()
    assert "POST /v1/sandboxes" in routes and "error 404 sandbox_not_found" in routes
