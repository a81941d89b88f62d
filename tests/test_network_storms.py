"""The network while one sandbox does its worst, and while our own processes are killed: neighbours are served, nothing leaks."""
import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import threading
import time

import pytest

from harness import until
from net_attacks import KIT

RULES = {"rules": ["allow good.test 80,443", "allow *.good.test", "allow *.hostile.test 80,443"]}
GREET = "print(json.dumps(http('good.test', 80, b'GET /%s HTTP/1.0\\r\\nHost: good.test\\r\\n\\r\\n')))"


@pytest.fixture(scope="module")
def api(net):
    return net.api


def make_box(api):
    return api.create_with("/root/kit.py", KIT + STORMS, network=RULES, user="root")


@pytest.fixture(scope="module")
def boxes(api):
    """The greedy one, and its neighbours."""
    made = [make_box(api) for _ in range(3)]
    yield made
    for sandbox in made:
        api.call("DELETE", f"/v1/sandboxes/{sandbox}")


def start(api, box, script, *args):
    return api.start(box, ["python3", "-c", "import sys; sys.path.insert(0, '/root'); from kit import *\n" + script,
                           *[json.dumps(a) for a in args]])["process"]


def result(api, box, script, *args):
    n = start(api, box, script, *args)
    done = api.wait(box, n)
    with api.output(box, n) as events:
        text = b"".join(e["data"].encode() for e in events if e["type"] in ("stdout", "stderr"))
    assert done["exit_code"] == 0, text
    return json.loads(text)


STORMS = r'''
import resource, threading
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def crowd(host, port, count, first=b""):
    """Open that many connections and keep them; how many were not refused, then wait for a line."""
    to = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
    kept = []
    for _ in range(count):
        s = socket.socket()
        s.settimeout(PATIENCE)
        try:
            s.connect(to)
            if first:
                s.send(first)
            kept.append(s)
        except OSError:
            s.close()
    print(json.dumps(len(kept)), flush=True)
    return kept


def knock(where, count):
    """Attempts that are denied, as fast as they go; how many passed."""
    passed = 0
    for i in range(count):
        passed += connect(*where[i % len(where)]).startswith("open")
    return passed


def spray(count, stop):
    """Datagrams to all sorts of places, and questions that nobody answers, until told to stop."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    sent = 0
    while not os.path.exists(stop) and sent < count:
        for data, to in ((question("x%d.silent.hostile.test" % sent), ("192.0.2.53", 53)), (question("n%d.evil.test" % sent), ("192.0.2.53", 53)),
                         (b"y" * 1200, ("203.0.113.%d" % (sent % 240), 443)), (question("silent.hostile.test"), ("192.0.2.53", 53))):
            try:
                s.sendto(data, to)
            except OSError:
                pass
            sent += 1
        if sent % 400 == 0:
            time.sleep(0.001)
    return sent


def loop(stop, evil, mark):
    """What a busy client does, good and bad by turns, until it is told to stop and was served once more after that;
    counts of what came of it."""
    counts, last = {"good": 0, "stopped": 0}, False
    def note(key):
        counts[key] = counts.get(key, 0) + 1
    while not last or not counts["good"]:
        if os.path.exists(stop) and not last:
            last, counts["good"] = True, 0
        got = http("good.test", 80, ("GET /%s HTTP/1.0\r\nHost: good.test\r\n\r\n" % mark).encode())
        note("good" if " 404 " in got or "page of" in got else "none")
        for host, say in ((evil, b"GET /leak HTTP/1.0\r\nHost: evil.test\r\n\r\n"), ("good.test", b"GET /leak HTTP/1.0\r\nHost: other.test\r\n\r\n")):
            got = http(host, 80, say)
            note("LEAK" if " 404 " in got else "stopped")
        note("LEAK" if hello(evil, 443, client_hello("good.test")).startswith("handshake") else "stopped")
        note("LEAK" if connect(evil, 4567).startswith("open") else "stopped")
        answer = ask("198.51.100.200", "leak.evil.test", patience=1)
        note("LEAK" if answer and answer[1] else "stopped")
    return counts
'''


def rss_of(pids):
    return sum(int(line.split()[1]) for pid in pids for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))


@contextlib.contextmanager
def held(api, box, script, *args):
    """A script that goes on until the end of the block."""
    n = start(api, box, script, *args)
    try:
        yield n
    finally:
        api.call("DELETE", f"/v1/sandboxes/{box}/processes/{n}")


def first_line(api, box, n):
    def there():
        with api.output(box, n, follow=False) as events:
            return b"".join(e["data"].encode() for e in events if e["type"] == "stdout").decode().splitlines()
    return until(there, "its first line", 120)[0]


def served(api, boxes, word):
    """Both neighbours get their page and their name."""
    for box in boxes:
        assert result(api, box, GREET % word).startswith("HTTP/1.1 404")  # an address without a page, for the server's log
        assert result(api, box, "print(json.dumps(ask('192.0.2.53', 'good.test')[0]))") == 0


def test_connections_without_end(api, net, boxes, world):
    """5,000 at once of one sandbox: it gets its share, the broker stays small, neighbours are served; then they are gone."""
    greedy, *others = boxes
    kept, broker = [], net.pids("warren-broker")
    listener = world.listen(world.odd, 4100)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                kept.append(listener.accept()[0])
    threading.Thread(target=accept, daemon=True).start()
    before = rss_of(broker)
    with held(api, greedy, "kept = crowd('odd.good.test', 4100, 5000, b'hello\\n')\nsys.stdin.read() or time.sleep(600)") as n:
        first_line(api, greedy, n)
        served(api, others, "crowd")
        assert 100 < len(kept) <= 2048
        assert net.pids("warren-broker") == broker and rss_of(broker) - before < 64 << 10  # KiB
    for s in kept:
        s.close()
    listener.close()
    until(lambda: result(api, greedy, GREET % "after").startswith("HTTP/1.1 404"), "its network, again")


def test_clients_that_are_slow(api, boxes, world):
    """Half a head, half a hello, half a question, thousands of them: they keep nobody else waiting."""
    greedy, *others = boxes
    with held(api, greedy, "a = crowd('good.test', 80, 900, b'GET / HT')\nb = crowd('good.test', 443, 900, b'\\x16\\x03\\x01\\x02')\n"
              "c = crowd('192.0.2.53', 53, 200, b'\\x00')\nprint('all', flush=True)\ntime.sleep(600)") as n:
        until(lambda: b"all" in outputs(api, greedy, n), "all of them", 120)
        served(api, others, "slow")
    assert not [line for line in world.served(" 400 ") if "GET / HT" in line]


def outputs(api, box, n):
    with api.output(box, n, follow=False) as events:
        return b"".join(e["data"].encode() for e in events if e["type"] == "stdout")


@pytest.fixture(scope="module")
def preview(net, api, boxes):
    """Asks for a page of a neighbour's, through the broker and what it asks the daemon."""
    api.start(boxes[1], ["python3", "-m", "http.server", "8000"])

    def ask():
        return api.call("GET", "/", headers={"Host": f"8000-{boxes[1]}.localhost"}).status == 200
    until(ask, "the preview")
    return ask


def test_a_flood_of_datagrams_and_questions(api, boxes, world, preview):
    """Questions that are denied are told, too: that must not stand in the way of others' previews."""
    greedy, *others = boxes
    with held(api, greedy, "print('go', flush=True)\nthreading.Thread(target=spray, args=(10**9, '/nowhere')).start()\nspray(10**9, '/nowhere')") as n:
        first_line(api, greedy, n)
        assert all(preview() for _ in range(20))
        served(api, others, "flood")
    until(lambda: result(api, greedy, "print(json.dumps(ask('192.0.2.53', 'good.test', patience=5)))"), "its names, again")


def test_a_flood_of_denials(api, boxes, world, preview):
    """Each is told; telling does not stand in the way of what others are told, nor of their previews."""
    greedy, *others = boxes
    with held(api, greedy, "print('go', flush=True)\nfor _ in range(3):\n    threading.Thread(target=knock, args=([(arg(1), 443), (arg(1), 80), ('10.213.77.1', 22)], 10**9)).start()",
              world.evil) as n:
        first_line(api, greedy, n)
        assert all(preview() for _ in range(20))
        served(api, others, "denials")
        assert result(api, others[1], "print(json.dumps(connect('10.213.77.9', 443)))").startswith("Connection")
        until(lambda: [e for e in api.ok("GET", f"/v1/sandboxes/{others[1]}/network/log")["entries"] if e["address"] == "10.213.77.9"], "the neighbour's entry")


# -- our own processes are killed

def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_broker(net):
    kill(net.pids("warren-broker"))


def kill_keeper(net):
    net.kill_keeper(random.shuffle)


def kill_daemon(net):
    net.kill()
    net.start()


@pytest.mark.parametrize("end, times", [(kill_broker, 12), (kill_daemon, 3), (kill_keeper, 3)])
def test_a_restart_under_load(api, net, boxes, world, end, times):
    """Killed again and again while three sandboxes are busy: nothing that is denied is on the cable or at a server, and
    when it is over all of them work by themselves."""
    cable = world.sniff(lambda protocol, address, port: address not in (world.host, world.host6))
    stop = f"/root/stop-{end.__name__}"
    running = [start(api, box, "print(json.dumps(loop(arg(1), arg(2), arg(3))))", stop, world.evil, f"{end.__name__}-{box}") for box in boxes]
    for box in boxes:
        until(lambda: world.served(f"{end.__name__}-{box}"), "the clients")
    for _ in range(times):
        time.sleep(2.5 / times)  # spread over the time in which they run
        end(net)
    counts = []
    for box, n in zip(boxes, running):
        until(lambda: api.call("PUT", f"/v1/sandboxes/{box}/files?path={stop}", b"").status < 300, "the file that stops it")
        until(lambda: api.process(box, n)["state"] == "ended", "the client's end", 120)
        counts.append(json.loads(outputs(api, box, n)))
    for box in boxes:
        until(lambda: result(api, box, GREET % "again").startswith("HTTP/1.1 404"), "its network")
        assert result(api, box, "print(json.dumps(connect(arg(1), 443)))", world.evil).startswith("Connection")
    assert all(c["good"] and c["stopped"] and "LEAK" not in c for c in counts), counts
    assert end is not kill_keeper or not [c for c in counts if "none" in c], counts  # it is not in the way of anything
    assert not world.served("leak")
    fine = {(17, world.dns, 53), (6, world.dns, 53), (6, world.web, 80), (6, world.web6, 80)}
    assert not {seen for seen in cable.seen if seen[:2] != (1, world.dns)} - fine  # this machine says that who asked is gone
    assert "leak.evil.test" not in world.resolver.asked


def test_while_there_is_no_broker_there_is_no_way(api, net, boxes, world):
    """Not even for what is allowed; what is tried is refused at once."""
    launchers = net.launcher()
    for pid in launchers:
        os.kill(pid, signal.SIGSTOP)
    try:
        gone = net.pids("warren-broker")
        kill(gone)
        until(lambda: not [p for p in gone if running_still(p)], "the broker's end")
        cable = world.sniff(lambda protocol, address, port: address not in (world.host, world.host6))
        for box in boxes:
            got = result(api, box, "print(json.dumps([connect(arg(1), 443), connect(arg(2), 80), connect(arg(3), 80), datagram(arg(1), 443), ask('192.0.2.53', 'good.test', patience=1)]))",
                         world.evil, world.web, world.web6)
            assert got == ["ConnectionRefusedError"] * 4 + [None], got
        assert not cable.seen
    finally:
        for pid in launchers:
            os.kill(pid, signal.SIGCONT)
    for box in boxes:
        until(lambda: result(api, box, GREET % "back").startswith("HTTP/1.1 404"), "its network")


def running_still(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
