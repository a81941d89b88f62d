"""Bad input: each a clear error with a stable code, and the daemon goes on."""
import http.client
import json
import socket

import pytest

from harness import KEY, until

SMALLEST = {"memory_mb": 16, "disk_mb": 16, "pids": 4}

BAD_SANDBOXES = [
    # member, value, code, status
    ("image", "no-such-image", "image_not_found", 404),
    ("image", 5, "invalid_field", 400),
    ("image", "../../etc", None, None),
    ("image", "", None, None),
    ("name", "", "invalid_field", 400),
    ("name", "a b", "invalid_field", 400),
    ("name", "-first", "invalid_field", 400),
    ("name", "x" * 64, "invalid_field", 400),
    ("name", "../x", "invalid_field", 400),
    ("name", "é", "invalid_field", 400),
    ("name", "a\u0000b", "invalid_json", 400),
    ("name", 5, "invalid_field", 400),
    ("cpus", 0, "invalid_field", 400),
    ("cpus", -1, "invalid_field", 400),
    ("cpus", 1e9, "invalid_field", 400),
    ("cpus", "2", "invalid_field", 400),
    ("memory_mb", 0, "invalid_field", 400),
    ("memory_mb", 15, "invalid_field", 400),
    ("memory_mb", 2 ** 62, "invalid_field", 400),
    ("memory_mb", -5, "invalid_field", 400),
    ("memory_mb", 64.5, "invalid_field", 400),
    ("memory_mb", "64", "invalid_field", 400),
    ("memory_mb", True, "invalid_field", 400),
    ("disk_mb", 1, "invalid_field", 400),
    ("disk_mb", 2 ** 40, "invalid_field", 400),
    ("pids", 3, "invalid_field", 400),
    ("pids", 10 ** 6, "invalid_field", 400),
    ("nofile", 0, "invalid_field", 400),
    ("nofile", 2 ** 40, "invalid_field", 400),
    ("env", [], "invalid_field", 400),
    ("env", {"A": 1}, "invalid_field", 400),
    ("env", {"": "x"}, "invalid_field", 400),
    ("env", {"A=B": "x"}, "invalid_field", 400),
    ("env", {"A": "a\u0000b"}, "invalid_json", 400),
    ("metadata", {"a": {}}, "invalid_field", 400),
    ("metadata", "x", "invalid_field", 400),
    ("user", 5, "invalid_field", 400),
    ("workdir", 5, "invalid_field", 400),
    ("timeout_s", -1, "invalid_field", 400),
    ("timeout_s", 1e30, "invalid_field", 400),
    ("timeout_s", "soon", "invalid_field", 400),
    ("on_timeout", "explode", "invalid_field", 400),
    ("idle_timeout_s", -1, "invalid_field", 400),
    ("on_idle", "sing", "invalid_field", 400),
    ("colour", "red", "unknown_field", 400),
]


@pytest.mark.parametrize("member,value,code,status", BAD_SANDBOXES,
                         ids=lambda v: repr(v)[:24] if not isinstance(v, (type(None),)) else "-")
def test_bad_sandbox_members(api, member, value, code, status):
    before = api.list(limit=1000)["sandboxes"]
    body = {"image": "tiny", member: value}
    if code:
        error = api.refused(status, code, "POST", "/v1/sandboxes", body)
        assert code == "invalid_json" or member in error["message"] or \
            str(value) in error["message"], error
    else:
        assert api.call("POST", "/v1/sandboxes", body).status in (400, 404)
    assert api.list(limit=1000)["sandboxes"] == before


BAD_COMMANDS = [
    ({}, "missing_field"),
    (b"", "missing_field"),
    ({"argv": []}, "invalid_field"),
    ({"argv": "ls"}, "invalid_field"),
    ({"argv": [1]}, "invalid_field"),
    ({"argv": [""]}, None),
    ({"argv": ["a\u0000b"]}, "invalid_json"),
    ({"argv": ["true"], "shell": "true"}, "invalid_field"),
    ({"shell": 5}, "invalid_field"),
    ({"shell": "a\u0000b"}, "invalid_json"),
    ({"argv": ["true"], "env": {"A": None}}, "invalid_field"),
    ({"argv": ["true"], "env": {"A=": "x"}}, "invalid_field"),
    ({"argv": ["true"], "cwd": 1}, "invalid_field"),
    ({"argv": ["true"], "cwd": "a\u0000"}, "invalid_json"),
    ({"argv": ["true"], "timeout_s": -1}, "invalid_field"),
    ({"argv": ["true"], "timeout_s": "1"}, "invalid_field"),
    ({"argv": ["true"], "stdin": 5}, "invalid_field"),
    ({"argv": ["true"], "output_limit": -1}, "invalid_field"),
    ({"argv": ["true"], "colour": 1}, "unknown_field"),
    ({"argv": ["true"], "user": "no-such-user"}, "user_not_found"),
    ({"argv": ["true"], "user": "99999999999"}, None),
    ({"argv": ["true"], "user": "70000"}, None),
    ({"argv": ["true"], "user": "-1"}, None),
    ({"argv": ["true"], "user": "0:0:0"}, None),
    ({"argv": ["true"], "cwd": "relative/path"}, None),
]


@pytest.mark.parametrize("body,code", BAD_COMMANDS, ids=lambda v: repr(v)[:40])
def test_bad_commands(api, tiny, body, code):
    reply = api.call("POST", f"/v1/sandboxes/{tiny}/exec", body)
    assert reply.status == 400, reply
    if code:
        assert reply.code == code
    assert api.out(tiny, ["echo", "ok"]) == "ok\n"


BAD_BODIES = [
    b"{", b"nonsense", b"[]", b'"text"', b"5", b"null", b'{"image": "tiny",}',
    b'{"name": "\xff\xfe"}', b'{"name": "\xc0\x80"}', b'{"name": "\xed\xa0\x80"}',
    b'{"image": "tiny"} trailing', b"\x00\x01\x02", b'{"name": "a", "name": "b"}',
    b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"metadata": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"memory_mb": 1e999}', b'{"memory_mb": 99999999999999999999999999}',
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda b: repr(b[:24]))
def test_bodies_that_are_no_json_object(api, body):
    reply = api.call("POST", "/v1/sandboxes", body)
    assert reply.status == 400, reply
    assert reply.code in ("invalid_json", "invalid_field"), reply


def test_a_huge_body_is_refused(api, daemon, tiny):
    body = b'{"argv": ["echo", "' + b"x" * (80 << 20) + b'"]}'
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as s:
        s.sendall(f"POST /v1/sandboxes/{tiny}/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}"
                  f"\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        try:
            s.sendall(body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while chunk := s.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
        assert not answer or b" 413 " in answer.split(b"\r\n")[0], answer[:300]
    assert api.call("GET", "/v1/health").status == 200


def test_megabytes_of_arguments(api, tiny):
    reply = api.call("POST", f"/v1/sandboxes/{tiny}/exec", {"argv": ["echo"] + ["x" * 1000] * 3000})
    assert (reply.status, reply.code) in ((400, "argument_too_large"), (413, "body_too_large"))
    reply = api.call("POST", f"/v1/sandboxes/{tiny}/exec",
                     {"argv": ["true"], "env": {f"V{i}": "x" * 4000 for i in range(1000)}})
    assert (reply.status, reply.code) in ((400, "argument_too_large"), (413, "body_too_large"))
    assert api.out(tiny, ["echo", "ok"]) == "ok\n"


@pytest.mark.parametrize("method,path,status,code", [
    ("GET", "/v1/nothing", 404, "not_found"),
    ("GET", "/", 404, "not_found"),
    ("GET", "/v1/sandboxes/nosuchsandboxatall00", 404, "sandbox_not_found"),
    ("GET", "/v1/sandboxes/%2e%2e%2fetc", 404, None),
    ("GET", "/v1/sandboxes/" + "x" * 4000, 404, None),
    ("DELETE", "/v1/sandboxes/no-such-name", 404, "sandbox_not_found"),
    ("PUT", "/v1/sandboxes", 405, "method_not_allowed"),
    ("DELETE", "/v1/health", 405, "method_not_allowed"),
    ("PATCH", "/v1/images/tiny", 405, "method_not_allowed"),
    ("GET", "/v1/sandboxes?limit=0", 400, "invalid_query"),
    ("GET", "/v1/sandboxes?limit=99999", 400, "invalid_query"),
    ("GET", "/v1/sandboxes?limit=x", 400, "invalid_query"),
    ("GET", "/v1/sandboxes?order=sideways", 400, "invalid_query"),
    ("GET", "/v1/sandboxes?state=happy", 400, "invalid_query"),
    ("GET", "/v1/sandboxes?cursor=%00garbage", 400, "invalid_query"),
    ("GET", "/v1/sandboxes?colour=red", 400, "invalid_query"),
    ("GET", "/v1/events?since=x", 400, "invalid_query"),
    ("GET", "/v1/events?since=-5", 400, "invalid_query"),
    ("DELETE", "/v1/images/none", 404, "image_not_found"),
    ("DELETE", "/v1/keys/none", 404, "key_not_found"),
])
def test_bad_paths_methods_and_queries(api, method, path, status, code):
    reply = api.call(method, path)
    assert reply.status == status, reply
    if code:
        assert reply.code == code, reply


@pytest.mark.parametrize("path", ["processes/x", "processes/-1", "processes/18446744073709551616",
                                  "processes/1/output?since=x", "processes/1/nothing"])
def test_bad_process_paths(api, tiny, path):
    assert api.call("GET", f"/v1/sandboxes/{tiny}/{path}").status in (400, 404)


@pytest.mark.parametrize("body", [{"signal": "SIGNOPE"}, {"signal": 0}, {"signal": 999}, {"signal": -9},
                                  {}, {"signal": 9, "scope": "planet"}, {"signal": []}])
def test_bad_signals(api, tiny, body):
    n = api.start(tiny, ["sleep", "600"])["process"]
    reply = api.call("POST", f"/v1/sandboxes/{tiny}/processes/{n}/signal", body)
    assert reply.status == 400, reply
    assert api.process(tiny, n)["state"] == "running"


@pytest.mark.parametrize("size", [{"rows": 0, "cols": 80}, {"rows": "x", "cols": 1},
                                  {"rows": 100000, "cols": 80}])
def test_bad_terminal_sizes(api, tiny, size):
    reply = api.call("POST", f"/v1/sandboxes/{tiny}/processes", {"argv": ["true"], "pty": size})
    assert reply.status == 400, reply


def raw(daemon, data, read=True):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=30) as s:
        s.sendall(data)
        if read:
            return s.recv(65536)


def test_half_sent_requests_leave_nothing(api, daemon, tiny):
    head = f"POST /v1/sandboxes/{tiny}/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
    before = len(api.ok("GET", f"/v1/sandboxes/{tiny}/processes")["processes"])
    raw(daemon, b"GET", read=False)
    raw(daemon, head.encode(), read=False)
    raw(daemon, head.encode() + b'Content-Length: 100\r\n\r\n{"argv": ["touch", "/tmp/half"]', read=False)
    raw(daemon, head.encode() + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"arg', read=False)
    assert api.exec(tiny, ["ls", "/tmp/half"])["exit_code"] != 0
    assert len(api.ok("GET", f"/v1/sandboxes/{tiny}/processes")["processes"]) == before + 1


@pytest.mark.parametrize("data", [
    b"\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET / HTTP/9.9\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\n\r\n" + b"X" * 100,
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
], ids=range(8))
def test_bytes_that_are_no_request(api, daemon, data):
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=30) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:  # it may hang up before we are done
            pass
    assert api.call("GET", "/v1/health").status == 200


def test_clients_that_vanish_leave_no_connection_behind(api, daemon, tiny):
    def fds():
        import os
        return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    api.out(tiny, ["true"])
    before = fds()
    for _ in range(20):
        stream = api.stream("POST", f"/v1/sandboxes/{tiny}/exec", {"shell": "echo x; sleep 600"})
        n = stream.until(type="start")["process"]
        stream.close()
        api.ok("DELETE", f"/v1/sandboxes/{tiny}/processes/{n}")
    until(lambda: fds() <= before + 4, f"descriptors to be given back ({before} before)")


def test_a_vanished_exec_client_without_stream(api, daemon, tiny):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=30)
    connection.request("POST", f"/v1/sandboxes/{tiny}/exec", json.dumps({"shell": "sleep 8123"}),
                       api.headers())
    until(lambda: "sleep 8123" in api.out(tiny, ["ps"]))
    connection.close()
    assert api.out(tiny, ["echo", "on"]) == "on\n"


def test_images_that_are_none(api):
    for body in (b"", b"this is no tar", b"\0" * 100_000, b"\x1f\x8b\x08\x00rubbish",
                 b"\x28\xb5\x2f\xfdrubbish"):
        reply = api.call("PUT", "/v1/images/bad", body)
        assert 400 <= reply.status < 500, (body[:20], reply)
    assert "bad" not in [i["name"] for i in api.ok("GET", "/v1/images")["images"]]


def test_an_unknown_member_names_itself(api):
    error = api.refused(400, "unknown_field", "POST", "/v1/sandboxes", {"imgae": "base"})
    assert "imgae" in error["message"]


def test_a_state_that_is_none_names_those_that_are(api):
    error = api.refused(400, "invalid_query", "GET", "/v1/sandboxes?state=happy")
    named = error["message"].split(" list of ")[1].split(", ")
    assert {"running", "frozen", "stopped", "paused"} <= set(named)
    for state in named:
        api.ok("GET", f"/v1/sandboxes?state={state}")
