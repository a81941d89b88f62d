"""What a sandbox's network carried: the log, who made a connection, sums by host, limits, events."""
import contextlib
import http.server
import json
import os
import signal
import socketserver
import subprocess
import threading
import time

import pytest

import harness
from harness import until

HERE = harness.own_address(2)  # on loopback while these tests run
PORT = 8078
MIB = 1024 * 1024

# Inside: fetches so many bytes, then waits for a line if it is told to; one word of what happened.
FETCH = r"""
import socket, sys, time
host, port, size, hold = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), len(sys.argv) > 4
try:
    s = socket.create_connection((host, port), timeout=60)
    s.sendall(b"GET /%d HTTP/1.1\r\nHost: here\r\n\r\n" % size)
    got = 0
    while got < size and (piece := s.recv(65536)):
        got += len(piece)
    if hold:
        print("held", flush=True)
        sys.stdin.readline()
    print("got" if got >= size else "cut", flush=True)
except OSError as e:
    print(type(e).__name__, flush=True)
"""


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(b"x" * size)

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@pytest.fixture(scope="module")
def world():
    with harness.own_addresses(HERE), Server((HERE, PORT), Web) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def daemon(world):
    with harness.running("--resolvers", f"{HERE}:9", "--egress-open", f"{HERE}/32",
                         "--network-limits-max", "connections=500") as d:
        yield d


@pytest.fixture(scope="module")
def api(daemon):
    return daemon.api


def make_box(api, **spec):
    return api.create_with("/tmp/fetch.py", FETCH, network={"rules": [f"allow {HERE}"]}, **spec)


@pytest.fixture(scope="module")
def box(api):
    return make_box(api)


def fetch(api, box, size, host=HERE, port=PORT, **more):
    return api.out(box, ["python3", "/tmp/fetch.py", host, str(port), str(size)], **more).strip()


def log_of(api, box, **query):
    query = "&".join(f"{k}={v}" for k, v in query.items())
    return api.ok("GET", f"/v1/sandboxes/{box}/network/log?{query}")


def usage_of(api, box):
    return api.ok("GET", f"/v1/sandboxes/{box}/network/usage")


def host_of(api, box, host=HERE):
    return next((h for h in usage_of(api, box)["hosts"] if h["host"] == host), None)


def wait_entry(api, box, after=0, **want):
    def found():
        return next((e for e in log_of(api, box, after=after)["entries"]
                     if all(e[k] == v for k, v in want.items())), None)
    return until(found, f"an entry {want}")


def last(api, box):
    return log_of(api, box)["next"]


def test_the_program_is_known_of_what_is_denied_and_of_what_is_not(api, box):
    def known(run, **want):
        """On a machine that is busy a program may be gone before it was found: not every time."""
        before = last(api, box)
        run()
        return wait_entry(api, box, before, **want)["program"]

    n = api.start(box, ["python3", "/tmp/fetch.py", HERE, str(PORT), "1000", "hold"], stdin=True)["process"]
    until(lambda: host_of(api, box), "a connection")
    program = until(lambda: known(lambda: fetch(api, box, 1, host="192.0.2.200", port=443),
                                  verdict="denied", kind="connection"), "the program of a denied connection")
    assert program.startswith("/usr/bin/python3")
    assert until(lambda: known(lambda: api.exec(box, "curl -s http://denied.test/", user="1000:1000"),
                               kind="dns", name="denied.test"), "the program of a question") == "/usr/bin/curl"
    before = last(api, box)
    api.stdin(box, n, b"\n")
    assert wait_entry(api, box, before, verdict="allowed")["program"].startswith("/usr/bin/python3")


def test_one_that_tries_over_and_over_costs_little_and_is_told_of_once(api, box):
    before = last(api, box)
    seq = api.ok("GET", "/v1/events?since=0&limit=1000")["next"]
    flood = ("import socket\nfor i in range(3000):\n s = socket.socket()\n"
             " try: s.connect(('192.0.2.201', 4000)); s.recv(1)\n except OSError: pass\n s.close()\n")
    api.out(box, ["python3", "-c", flood])
    until(lambda: (host_of(api, box, "192.0.2.201") or {"denied": 0})["denied"] == 3000, "3000 refusals counted")
    entries = log_of(api, box, after=before)["entries"]
    assert 0 < len(entries) <= 512
    events = [e for e in api.ok("GET", f"/v1/events?since={seq}&limit=1000")["events"] if e["type"] == "network.denied"]
    mine = [e for e in events if e["sandbox"] == box and e["data"]["address"] == "192.0.2.201"]
    assert len(mine) == 1
    assert (mine[0]["data"]["port"], mine[0]["data"]["kind"], mine[0]["data"]["reason"]) == (4000, "connection", "reserved_address")


def test_bytes_are_counted_by_host_while_a_connection_is_open_and_in_usage(api, daemon):
    box = make_box(api)
    n = api.start(box, ["python3", "/tmp/fetch.py", HERE, str(PORT), str(3 * MIB), "hold"], stdin=True)["process"]
    until(lambda: (host_of(api, box) or {"received_bytes": 0})["received_bytes"] > 3 * MIB, "bytes of what is open")
    assert host_of(api, box)["connections"] == 1
    assert not [e for e in log_of(api, box)["entries"] if e["kind"] == "connection" and not e["open"]]
    api.stdin(box, n, b"\n")
    entry = wait_entry(api, box, kind="connection", open=False)
    assert entry["received_bytes"] > 3 * MIB

    def summed():
        """Sums are told every second."""
        row = host_of(api, box)
        return row if all(row[k] == entry[k] for k in ("received_bytes", "sent_bytes")) else None
    row = until(summed, "the last bytes in the sums")
    assert row["first"] <= row["last"]

    def used():
        rows = api.ok("GET", "/v1/usage")["sandboxes"]
        return next((r for r in rows if r["sandbox"] == box and r["network_rx_bytes"] > 3 * MIB), None)
    assert until(used, "the bytes in usage", 60)["network_tx_bytes"] > 0
    text = api.call("GET", "/metrics").body.decode()
    assert int(text.split("\nwarren_network_received_bytes_total ")[1].split()[0]) > 3 * MIB
    api.call("DELETE", f"/v1/sandboxes/{box}")
    assert host_of(api, box) == row  # for some days
    assert wait_entry(api, box, kind="connection", open=False) == entry
    assert api.call("GET", "/v1/sandboxes/aaaaaaaaaaaaaaaaaaaa/network/log").status == 404


def test_log_and_sums_outlive_daemon_and_broker(api, daemon, box):
    before = last(api, box)
    fetch(api, box, 1000)
    number = wait_entry(api, box, before, kind="connection", verdict="allowed")["number"]
    row = until(lambda: host_of(api, box), "a row")
    daemon.restart()
    assert host_of(api, box)["received_bytes"] >= row["received_bytes"]
    assert last(api, box) == number
    before = host_of(api, box)["connections"]
    os.kill(until(lambda: daemon.pids("warren-broker"), "the broker")[0], signal.SIGKILL)
    until(lambda: fetch(api, box, 1000) == "got", "a way out again")
    until(lambda: host_of(api, box)["connections"] > before, "another connection")
    assert wait_entry(api, box, number, kind="connection", verdict="allowed")["number"] > number


def test_the_log_comes_in_pages_and_waits(api, box):
    for i in range(4):
        fetch(api, box, 1, host="192.0.2.202", port=7000 + i)
    wait_entry(api, box, port=7003)
    pages, after = [], 0
    while page := log_of(api, box, after=after, limit=3)["entries"]:
        assert len(page) <= 3
        pages += page
        after = page[-1]["number"]
    numbers = [e["number"] for e in pages]
    assert numbers == sorted(set(numbers)) and numbers == [e["number"] for e in log_of(api, box)["entries"]]
    got = []
    waiting = threading.Thread(target=lambda: got.extend(log_of(api, box, after=after, wait_s=60)["entries"]))
    waiting.start()
    fetch(api, box, 1, host="192.0.2.203", port=7100)
    waiting.join(60)
    assert got and got[0]["port"] == 7100
    for bad in "after=x", "limit=0", "limit=513", "wait_s=61", "page=2":
        assert api.call("GET", f"/v1/sandboxes/{box}/network/log?{bad}").status == 400


def test_limits_of_connections_hold_and_change_at_once(api):
    box = make_box(api, network_limits={"connections": 2})
    held = [api.start(box, ["python3", "/tmp/fetch.py", HERE, str(PORT), "10", "hold"], stdin=True)["process"] for _ in range(2)]
    until(lambda: (host_of(api, box) or {"connections": 0})["connections"] == 2, "two connections")
    assert fetch(api, box, 10) == "cut" or wait_entry(api, box, reason="connections_limit")
    entry = wait_entry(api, box, reason="connections_limit")
    assert entry["verdict"] == "denied" and entry["address"] == HERE
    assert api.ok("PATCH", f"/v1/sandboxes/{box}", {"network_limits": {"connections": 3}})["network_limits"]["connections"] == 3
    assert fetch(api, box, 10) == "got"
    for n in held:
        api.stdin(box, n, b"\n")
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"network_limits": {"connections_per_s": 1}})
    burst = f"import socket\nfor i in range(50):\n with socket.create_connection(('{HERE}', {PORT})): pass\n"

    def too_fast():
        api.exec(box, ["python3", "-c", burst])
        return [e for e in log_of(api, box)["entries"] if e["reason"] == "connections_per_s_limit"]
    assert until(too_fast, "a connection too many")[0]["verdict"] == "denied"
    assert api.ok("PATCH", f"/v1/sandboxes/{box}", {"network_limits": None})["network_limits"] == {
        "connections": None, "connections_per_s": None, "rate_mbps": None, "total_mb": None}
    assert fetch(api, box, 10) == "got"
    for bad in {"connections": 0}, {"connections": 501}, {"rate_mbps": "x"}, {"speed": 1}, "fast":
        assert api.call("PATCH", f"/v1/sandboxes/{box}", {"network_limits": bad}).status == 400
    api.call("DELETE", f"/v1/sandboxes/{box}")


def test_a_rate_holds_the_sender_back_and_a_sum_ends_it(api, daemon):
    box = make_box(api, network_limits={"rate_mbps": 8})
    began = time.monotonic()
    assert fetch(api, box, 3 * MIB) == "got"
    assert time.monotonic() - began > 2  # a megabyte a second, and a bucket that was full: it can only take longer
    api.ok("PATCH", f"/v1/sandboxes/{box}", {"network_limits": {"total_mb": 5}})
    assert fetch(api, box, 8 * MIB) in ("cut", "ConnectionResetError")
    cut = wait_entry(api, box, error="EDQUOT")
    assert cut["verdict"] == "allowed"
    row = until(lambda: host_of(api, box), "a row")
    assert row["sent_bytes"] + row["received_bytes"] <= 5 * MIB + 64 * 1024
    assert fetch(api, box, 100000) in ("cut", "ConnectionResetError")  # what comes is 429 and why
    assert wait_entry(api, box, reason="bytes_limit")["verdict"] == "denied"
    daemon.restart()
    before = last(api, box)
    assert fetch(api, box, 100000) in ("cut", "ConnectionResetError", "ConnectionRefusedError")
    until(lambda: fetch(api, box, 100000) != "got" and wait_entry(api, box, before, reason="bytes_limit"), "still denied")
    api.call("DELETE", f"/v1/sandboxes/{box}")


def test_previews_are_counted(api, daemon, box):
    api.start(box, ["python3", "-m", "http.server", "8000", "--directory", "/usr/lib"])
    until(lambda: api.exec(box, "curl -s -o /dev/null localhost:8000/")["exit_code"] == 0, "a server")
    before = usage_of(api, box)["previews"]
    got = subprocess.run(["curl", "-s", "-H", f"Host: 8000-{box}.localhost", daemon.url + "/"], capture_output=True).stdout
    assert b"Directory listing" in got

    def counted():
        now = usage_of(api, box)["previews"]
        return now["requests"] > before["requests"] and now["sent_bytes"] >= before["sent_bytes"] + len(got) and now
    assert until(counted, "a request counted")["received_bytes"] > before["received_bytes"]
    assert not [h for h in usage_of(api, box)["hosts"] if h["host"] == "localhost"]


def test_the_command_line_shows_them(api, daemon, box):
    fetch(api, box, 1000)
    until(lambda: host_of(api, box), "a row")
    warren = harness.BUILD / "warren"
    env = {**os.environ, "WARREN_URL": daemon.url, "WARREN_API_KEY": api.key}
    usage = subprocess.run([warren, "net", "usage", box], env=env, capture_output=True, text=True, check=True).stdout
    assert HERE in usage and "(all that left it)" in usage
    told = json.loads(subprocess.run([warren, "--json", "net", "usage", box], env=env, capture_output=True, text=True, check=True).stdout)
    assert told["hosts"]
    follow = subprocess.Popen([warren, "--json", "net", "log", "-f", "--denied", box], env=env, stdout=subprocess.PIPE, text=True)
    try:
        fetch(api, box, 1, host="192.0.2.204", port=7200)
        assert next(e for e in map(json.loads, follow.stdout) if e["address"] == "192.0.2.204")["port"] == 7200
    finally:
        follow.kill()
        follow.wait()
