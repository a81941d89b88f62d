"""Bindings while things change and break: a new value, a removed secret, a killed broker, a killed daemon, stop and start."""
import json
import os
import signal
import threading
import uuid

import pytest

from harness import until

PORT = 8443
HOST = f"good.test:{PORT}"


class Echo:
    """An HTTPS server in the world that remembers what requests carried."""

    def __init__(self, world):
        self.seen, self.lock, self.context = [], threading.Lock(), world.context
        world.serve_each(world.web, PORT, self.serve)

    def serve(self, plain):
        with self.context.wrap_socket(plain, server_side=True) as s:
            pending = b""
            while True:
                while b"\r\n\r\n" not in pending:
                    piece = s.recv(65536)
                    if not piece:
                        return
                    pending += piece
                head, pending = pending.split(b"\r\n\r\n", 1)
                lines = head.decode().split("\r\n")
                fields = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}
                with self.lock:
                    self.seen.append((lines[0], fields))
                body = json.dumps({"path": lines[0].split()[1], "headers": fields}).encode()
                s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def carried(self, path):
        """What the last request for this path had as its Authorization."""
        with self.lock:
            return next((f.get("authorization") for line, f in reversed(self.seen) if line.split()[1] == path), "no request")


@pytest.fixture(scope="module")
def echo(world):
    return Echo(world)


@pytest.fixture(scope="module")
def live(net):
    return net


@pytest.fixture(scope="module")
def key(live):
    value = "hunter2-" + uuid.uuid4().hex
    live.api.ok("POST", "/v1/secrets", {"name": "key", "value": value})
    yield value
    live.api.call("DELETE", "/v1/secrets/key")


@pytest.fixture(scope="module")
def box(live, key):
    """It has no network but what its binding gives it."""
    made = live.api.create(bindings=[f"key@{HOST}/v1/* name=good"])["id"]
    yield made
    live.api.call("DELETE", f"/v1/sandboxes/{made}")


def get(live, box, path=None, base=f"https://{HOST}", how=""):
    """One request from inside; what was asked for and what curl printed."""
    path = path or f"/v1/{uuid.uuid4().hex}"
    done = live.api.exec(box, f"curl -sS -m 60 {how} {base}{path}")
    return path, done["stdout"] + done["stderr"], done["exit_code"]


def works(live, box, echo, value, **more):
    path, said, code = get(live, box, **more)
    assert code == 0 and echo.carried(path) == f"Bearer {value}", said
    assert value not in said and path in said
    return path


def test_requests_that_fit_carry_it_in_both_forms_and_others_do_not_leave(live, box, echo, key):
    works(live, box, echo, key)
    works(live, box, echo, key, base="http://good.warren")
    path, said, code = get(live, box, "/v2/x")
    assert echo.carried(path) == "no request" and "page" not in said
    for other in ("https://other.test/", "http://good.test/", f"https://evil.test:{PORT}/"):
        assert live.api.exec(box, f"curl -sS -m 60 --fail {other}")["exit_code"] != 0
    used = until(lambda: [e for e in live.api.events(sandbox=box)["events"] if e["type"] == "secret.used"], "the event")
    assert len(used) == 1 and used[0]["data"]["secret"] == "key"


def test_a_new_value_is_in_force_at_once_and_a_removed_one_is_gone(live, box, echo, key):
    api, new = live.api, "hunter3-" + uuid.uuid4().hex
    api.ok("PATCH", "/v1/secrets/key", {"value": new})
    works(live, box, echo, new)
    api.ok("DELETE", "/v1/secrets/key")
    path, said, _ = get(live, box)
    assert echo.carried(path) == "no request" and "error" in said
    api.ok("POST", "/v1/secrets", {"name": "key", "value": key})
    works(live, box, echo, key)


def test_bindings_change_while_it_runs(live, box, echo, key):
    def bind(*bindings):
        live.api.ok("PATCH", f"/v1/sandboxes/{box}", {"bindings": list(bindings)})
    bind(f"key@{HOST}/v2/*")
    path, _, _ = get(live, box)
    assert echo.carried(path) == "no request"
    works(live, box, echo, key, path="/v2/" + uuid.uuid4().hex)
    bind()
    path, _, code = get(live, box, "/v2/x")
    assert code != 0 and echo.carried(path) == "no request"
    bind({"value": "team-1", "host": "good.test", "port": PORT, "as": "header", "header": "X-Team"}, f"key@{HOST}/v1/* name=good")
    works(live, box, echo, key)
    assert echo.seen[-1][1]["x-team"] == "team-1"


def kill_broker(live):
    old = live.pids("warren-broker")
    for pid in old:
        os.kill(pid, signal.SIGKILL)
    until(lambda: set(live.pids("warren-broker")) - set(old), "a new broker")


def back(live, box, echo, key):
    """Soon everything is as before; until then nothing leaves without it."""
    def again():
        path, said, code = get(live, box)
        assert echo.carried(path) in ("no request", f"Bearer {key}"), said
        return echo.carried(path) == f"Bearer {key}"
    until(again, "the bindings")


def test_a_killed_broker_comes_back_with_the_bindings(live, box, echo, key):
    kill_broker(live)
    back(live, box, echo, key)
    kill_broker(live)
    live.api.ok("PATCH", "/v1/secrets/key", {"value": key + "-4"})  # while it comes up
    back(live, box, echo, key + "-4")
    live.api.ok("PATCH", "/v1/secrets/key", {"value": key})
    works(live, box, echo, key)


def test_a_killed_daemon_comes_back_with_the_bindings(live, box, echo, key):
    live.kill()
    live.start()
    back(live, box, echo, key)


def test_a_stopped_one_starts_with_what_the_secret_is_then(live, box, echo, key):
    api, new = live.api, "hunter5-" + uuid.uuid4().hex
    api.ok("POST", f"/v1/sandboxes/{box}/stop")
    api.ok("PATCH", "/v1/secrets/key", {"value": new})
    api.ok("POST", f"/v1/sandboxes/{box}/start")
    works(live, box, echo, new)
    api.ok("PATCH", "/v1/secrets/key", {"value": key})
