"""Crowds of clients without a key, each in a process of its own, and what a client with one notices of them.

idle: has asked once and keeps the connection. slow: sends a head byte by byte. half: has connected and says nothing;
every second one has closed its side. body: sends a body byte by byte. next: has asked once, and for the first letter of
a second time. noise: has said what is no HTTP. long: has sent most of a long head.
"""
import contextlib
import http.client
import resource
import selectors
import socket
import subprocess
import sys
import time

BATCH = 256
HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /v1/health HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 4000
BODY = b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n" + b"x" * 3999
FIRST = {"idle": HEALTH, "slow": SLOW[:20], "half": b"", "body": BODY[:70], "next": HEALTH + b"G",
         "noise": b"\x16\x03\x01", "long": SLOW[:20] + b"\r\nHost: x\r\nA: " + b"x" * 20_000}
TRICKLE = {"slow": SLOW, "body": BODY}


@contextlib.contextmanager
def crowd(kind, n, port):
    """Hold this many connections from eight addresses until the end of the block."""
    child = subprocess.Popen([sys.executable, "-B", __file__, kind, str(n), str(port)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline().startswith("ready"), kind
        yield
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait()


def took(daemon, rounds):
    """Seconds that each request of a client with a key took, on one connection and on new ones in turns."""
    times = []
    kept = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=30)
    for i in range(rounds):
        c = kept if i % 2 else http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=30)
        began = time.monotonic()
        c.request("GET", "/v1/sandboxes", headers={"Authorization": f"Bearer {daemon.key}"})
        reply = c.getresponse()
        reply.read()
        times.append(time.monotonic() - began)
        assert reply.status == 200, reply.status
        if c is not kept:
            c.close()
    kept.close()
    return sorted(times)


def p99(times):
    return times[len(times) * 99 // 100]


def connect(kind, n, port):
    opened, pending = [], selectors.DefaultSelector()
    for i in range(n):
        s = socket.socket()
        s.setblocking(False)
        s.bind((f"127.0.1.{i % 8 + 1}", 0))
        s.connect_ex(("127.0.0.1", port))
        pending.register(s, selectors.EVENT_WRITE, i)
        opened.append(s)
        while len(pending.get_map()) >= (BATCH if i < n - 1 else 1):
            for key, _ in pending.select(1):
                pending.unregister(key.fileobj)
                with contextlib.suppress(OSError):  # turned away
                    key.fileobj.send(FIRST[kind])
                    if kind == "half" and key.data % 2:
                        key.fileobj.shutdown(socket.SHUT_WR)
    return opened


def main(kind, n, port):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened = connect(kind, n, port)
    print("ready", flush=True)
    gone = selectors.DefaultSelector()
    gone.register(sys.stdin, selectors.EVENT_READ)
    at = len(FIRST[kind])
    while not gone.select(0.5 if kind in TRICKLE else None):
        for s in opened:
            with contextlib.suppress(OSError):
                s.send(TRICKLE[kind][at:at + 1])
        at += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
