"""`warren rm`: many sandboxes at once."""
import http.server
import json
import threading

import pytest

from harness import DEADLINE, until


class Slow(http.server.BaseHTTPRequestHandler):
    """Answers deletions only when several of them are under way, the last one first."""
    protocol_version = "HTTP/1.1"
    ids = [f"box-{i:02}" for i in range(24)]
    together = 8

    def answer(self, status, body=None):
        text = json.dumps(body).encode() if body else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(200, {"sandboxes": [{"id": i, "state": "running"} for i in self.ids], "next_cursor": None})

    def do_DELETE(self):
        server, name = self.server, self.path.rsplit("/", 1)[1]

        def my_turn():
            if not server.order and len(server.waiting) >= self.together:
                server.round += 1
                server.order = server.waiting[:self.together][::-1]
                del server.waiting[:self.together]
                server.changed.notify_all()
            return server.order[:1] == [name]
        with server.changed:
            server.waiting.append(name)
            server.changed.notify_all()
            assert server.changed.wait_for(my_turn, DEADLINE), "the others did not come meanwhile"
        busy = name == "box-03"
        error = {"error": {"code": "sandbox_busy", "message": f"{name} is busy"}}
        self.answer(409, error) if busy else self.answer(204)
        with server.changed:
            server.order.remove(name)
            server.changed.notify_all()

    def log_message(self, *args):
        pass


@pytest.fixture
def slow():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    server.changed, server.waiting, server.order, server.round = threading.Condition(), [], [], 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_deletions_are_under_way_together_and_told_in_order(daemon, slow):
    done = daemon.cli("--url", f"http://127.0.0.1:{slow.server_port}", "rm", "-a", "-f")
    assert slow.round == len(Slow.ids) // Slow.together
    assert done.stdout.split() == [i for i in Slow.ids if i != "box-03"]
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "box-03" in done.stderr


def test_each_of_many_has_its_own_end(daemon, api):
    names = [f"many-{i}" for i in range(6)]
    for name in names:
        api.create(image="tiny", name=name)
    assert daemon.cli("stop", *names[:3]).returncode == 0
    done = daemon.cli("rm", *names[:2], "never-made", "", names[5])
    assert done.returncode == 1 and done.stdout.split() == names[:2]
    assert [line for line in done.stderr.splitlines() if "never-made" in line or "empty" in line
            or f"rm -f {names[5]}" in line] == done.stderr.splitlines() and done.stderr.count("\n") == 3
    done = daemon.cli("rm", "-f", names[0], *names[3:])
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, names[3:], "")
    left = {s["name"] for s in api.list(limit=1000)["sandboxes"]}
    assert names[2] in left and not left & {*names[:2], *names[3:]}
    assert daemon.cli("rm", names[2]).returncode == 0


def test_one_that_is_frozen_is_not_taken_for_a_stopped_one(daemon, api):
    who = api.create(image="tiny", freeze_after_s=0.2)["id"]
    until(lambda: api.get(who)["state"] == "frozen", "the frost")
    done = daemon.cli("rm", who)
    assert done.returncode == 1 and "is frozen" in done.stderr and f"warren rm -f {who}" in done.stderr
    assert api.get(who)["id"] == who
    assert daemon.cli("rm", "-f", who).returncode == 0
