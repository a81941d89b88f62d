"""What listens in a sandbox: the list, the events, the command."""
import json
import uuid

import pytest

from harness import until

LISTEN = """
import socket, sys, time
kept = []
for where in sys.argv[1:]:
    address, port = where.rsplit("-", 1)
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if address == "::1": s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((address, int(port)))
    s.listen()
    kept.append(s)
time.sleep(1000)
"""


@pytest.fixture
def box(daemon):
    made = daemon.api.create()["id"]
    daemon.api.ok("PUT", f"/v1/sandboxes/{made}/files?path=/tmp/listen.py", LISTEN)
    yield made
    daemon.api.call("DELETE", f"/v1/sandboxes/{made}")


def ports(daemon, box):
    return daemon.api.ok("GET", f"/v1/sandboxes/{box}/ports")["ports"]


def listen(daemon, box, *where, **more):
    return daemon.api.start(box, ["python3", "/tmp/listen.py", *where], **more)["process"]


def test_what_listens_is_listed_with_its_program(daemon, box):
    assert ports(daemon, box) == []
    n = listen(daemon, box, "127.0.0.1-3000", "0.0.0.0-8080", "::1-3000")
    until(lambda: len(ports(daemon, box)) == 3, "all three")
    rows = ports(daemon, box)
    assert [(r["port"], r["address"]) for r in rows] == [(3000, "127.0.0.1"), (3000, "::1"), (8080, "0.0.0.0")]
    assert {r["protocol"] for r in rows} == {"tcp"}
    assert all("/python3" in r["program"] for r in rows), rows
    assert rows[0]["url"] == f"https://3000-{box}.warren.test:{daemon.tls_port}"
    page = daemon.api.ok("GET", f"/v1/sandboxes/{box}/ports?limit=2")
    assert len(page["ports"]) == 2 and page["next_cursor"]
    daemon.api.signal(box, n, "SIGKILL")
    until(lambda: ports(daemon, box) == [], "them to close")


def test_another_users_program_is_named_too(daemon, box):
    listen(daemon, box, "127.0.0.1-5000", user="nobody")
    row, = until(lambda: ports(daemon, box), "it to listen")
    assert "/python3" in row["program"]


def test_the_way_out_is_no_port_of_the_sandbox(daemon):
    box = daemon.api.create(network="open")["id"]
    try:
        assert ports(daemon, box) == []
    finally:
        daemon.api.delete(box)


def test_many_ports_are_bounded(daemon, box):
    listen(daemon, box, *[f"127.0.0.1-{2000 + i}" for i in range(300)])
    rows = until(lambda: (got := daemon.api.ok("GET", f"/v1/sandboxes/{box}/ports?limit=1000")["ports"]) and len(got) == 256 and got,
                 "as many as are shown")
    assert len({r["port"] for r in rows}) == 256


def test_who_follows_the_events_is_told(daemon, box):
    since = daemon.api.events()["next"]
    with daemon.api.stream("GET", f"/v1/events?since={since}&sandbox={box}&follow=true") as events:
        n = listen(daemon, box, "127.0.0.1-4001")
        opened = events.until(type="port.opened")
        assert opened["sandbox"] == box and opened["data"]["port"] == 4001
        assert opened["data"]["address"] == "127.0.0.1" and "/python3" in opened["data"]["program"]
        daemon.api.signal(box, n, "SIGKILL")
        assert events.until(type="port.closed")["data"] == {"port": 4001}


def test_a_list_tells_the_events_too(daemon, box):
    since = daemon.api.events()["next"]
    listen(daemon, box, "127.0.0.1-4002")
    until(lambda: ports(daemon, box), "it to listen")
    ports(daemon, box)
    told = [e["type"] for e in daemon.api.events(since, box)["events"] if e["type"].startswith("port.")]
    assert told == ["port.opened"], "once"


def test_a_stopped_one_and_a_strangers_are_refused(daemon, box):
    daemon.api.ok("POST", f"/v1/sandboxes/{box}/stop")
    daemon.api.refused(409, "sandbox_not_running", "GET", f"/v1/sandboxes/{box}/ports")
    team = "ports-" + uuid.uuid4().hex[:8]
    daemon.api.ok("POST", "/v1/teams", {"name": team})
    key = daemon.api.ok("POST", "/v1/keys", {"name": "k", "team": team, "role": "member"})["key"]
    daemon.api.with_key(key).refused(404, "sandbox_not_found", "GET", f"/v1/sandboxes/{box}/ports")
    daemon.api.ok("DELETE", f"/v1/teams/{team}")


def test_what_the_sandbox_puts_over_proc_is_not_believed(daemon, box):
    """Root inside may try to make the list lie or hang: it fails, or is as it is."""
    listen(daemon, box, "127.0.0.1-4003")
    until(lambda: ports(daemon, box), "it to listen")
    daemon.api.exec(box, "mkfifo /tmp/f; mount --bind /tmp/f /proc/net/tcp; ln -sf /tmp/f /proc/net/tcp; true")
    reply = daemon.api.call("GET", f"/v1/sandboxes/{box}/ports")
    assert reply.status == 200 and [p["port"] for p in reply.json["ports"]] == [4003], reply


def test_the_command_line_lists_them(daemon, box):
    listen(daemon, box, "127.0.0.1-3000")
    until(lambda: ports(daemon, box), "it to listen")
    out = daemon.cli("ports", box)
    assert out.returncode == 0 and f"3000-{box}.warren.test" in out.stdout and "python3" in out.stdout
    assert json.loads(daemon.cli("--json", "ports", box).stdout)[0]["port"] == 3000
