"""An S3 server on loopback, with a gate in front of it.

The server is an npm package that stores objects in files but looks at no signature of version 4. The gate
does: it computes each request's signature anew and compares the body with the hash that was signed. It is also
where things go wrong on purpose: `gate.fault("cut", match="GET .*/chunks/", at=1000)`.
"""
import contextlib
import datetime
import hashlib
import hmac
import http.client
import http.server
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree

import pytest

from harness import DEADLINE, ROOT, cached, until

HERE = ROOT / "tests/s3"
REGION = "test-1"
KEY, SECRET = "WARRENTEST", "a/secret+of=tests/0123456789"
BUCKET = "warren"
HOP = {"connection", "keep-alive", "transfer-encoding", "authorization", "host", "expect"}


def install():
    """The server's packages, once for each lock file."""
    def made(at):
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / file, at)
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=at, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return cached("s3", (HERE / "package-lock.json").read_bytes(), made)


# -- signatures, as the service describes them

def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, method, path, query, headers, signed, day, region, stamp):
    """What must stand in the request's Authorization."""
    pairs = sorted((urllib.parse.quote(urllib.parse.unquote(n), safe="-_.~"),
                    urllib.parse.quote(urllib.parse.unquote(v), safe="-_.~"))
                   for n, _, v in (part.partition("=") for part in query.split("&") if part))
    canonical = "\n".join([
        method, urllib.parse.quote(urllib.parse.unquote(path), safe="/-_.~"), "&".join(f"{n}={v}" for n, v in pairs),
        *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in signed), "", ";".join(signed),
        headers["x-amz-content-sha256"]])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = _hmac(key, part)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def judge(keys, method, target, headers, body):
    """None, or the name of what is wrong with a request."""
    m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                     r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", headers.get("authorization", ""))
    if not m:
        return "AccessDenied"
    key, day, region, signed, given = m.groups()
    signed = signed.split(";")
    if key not in keys:
        return "InvalidAccessKeyId"
    want = headers.get("x-amz-content-sha256")
    if not want or "host" not in signed or region != REGION:
        return "AuthorizationHeaderMalformed"
    if any(name.startswith("x-amz-") and name not in signed for name in headers):
        return "AccessDenied"
    if want != "UNSIGNED-PAYLOAD" and want != hashlib.sha256(body).hexdigest():
        return "XAmzContentSHA256Mismatch"
    stamp = headers.get("x-amz-date", "")
    try:
        when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        return "AccessDenied"
    if abs(when.timestamp() - time.time()) > 900 or not stamp.startswith(day):
        return "RequestTimeTooSkewed"
    path, _, query = target.partition("?")
    right = signature(keys[key], method, path, query, headers, signed, day, region, stamp)
    return None if hmac.compare_digest(right, given) else "SignatureDoesNotMatch"


# -- the gate

class Fault:
    """kind: cut (the answer ends after `at` bytes, the connection with it), cut_in (the same with the request's
    body), status (`status`, an error of the service), slow (`at` seconds of silence first), corrupt (the byte at `at` of
    the body is another), missing (404)."""

    def __init__(self, kind, match=".", times=1, at=0, status=500):
        self.kind, self.match, self.times, self.at, self.status = kind, re.compile(match), times, at, status
        self.hits = 0


def _error(status, code):
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return status, [("Content-Type", "application/xml")], body.encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *args):
        pass

    def cut(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def take_body(self, fault):
        left = int(self.headers.get("Content-Length") or 0)
        if fault and fault.kind == "cut_in":
            self.rfile.read(min(left, fault.at))
            return None
        if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
            return self.rfile.read(left)
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def ask_server(self, body):
        headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP}
        conn = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=60)
        with self.server.one, contextlib.closing(conn):
            conn.request(self.command, self.path, body=body or None,
                         headers={**headers, "Host": f"127.0.0.1:{self.server.upstream}", "Content-Length": str(len(body))})
            got = conn.getresponse()
            return got.status, [(k, v) for k, v in got.getheaders() if k.lower() not in HOP], got.read()

    def answer(self, status, headers, body, fault):
        length = len(body)
        if self.command == "HEAD":
            length = next((v for k, v in headers if k.lower() == "content-length"), 0)
        if fault and fault.kind == "corrupt" and body:
            at = fault.at % len(body)
            body = body[:at] + bytes([body[at] ^ 0x41]) + body[at + 1:]
        head = f"HTTP/1.1 {status} {http.client.responses.get(status, '')}\r\n"
        head += "".join(f"{k}: {v}\r\n" for k, v in headers if k.lower() != "content-length")
        if status != 204:
            head += f"Content-Length: {length}\r\n"
        out = head.encode() + b"\r\n" + (b"" if self.command == "HEAD" else body)
        if fault and fault.kind == "cut":
            out = out[:fault.at]
        self.wfile.write(out)
        if fault and fault.kind == "cut":
            self.wfile.flush()
            self.cut()

    def handle_any(self):
        gate = self.server.gate
        fault = gate.pick(f"{self.command} {self.path}")
        body = self.take_body(fault)
        if body is None:
            return self.cut()
        if fault and fault.kind == "slow":
            gate.closing.wait(fault.at)
        headers = {k.lower(): v for k, v in self.headers.items()}
        wrong = judge(gate.keys, self.command, self.path, headers, body)
        gate.note(self.command, self.path, len(body), wrong)
        if wrong:
            got = _error(403, wrong)
        elif fault and fault.kind in ("status", "missing"):
            got = _error(404, "NoSuchKey") if fault.kind == "missing" else _error(fault.status, "InternalError")
        else:
            got = self.ask_server(body)
        return self.answer(*got, fault)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any


class Gate(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream, self.gate = upstream, self
        self.port = self.server_address[1]
        self.keys = {KEY: SECRET}
        self.faults, self.seen, self.closing = [], [], threading.Event()
        self.lock = threading.Lock()
        self.one = threading.Lock()  # the server dies of a list while something is removed
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that hangs up

    def fault(self, kind, **more):
        f = Fault(kind, **more)
        with self.lock:
            self.faults.append(f)
        return f

    def clear(self):
        with self.lock:
            self.faults.clear()
            self.seen.clear()

    def pick(self, line):
        with self.lock:
            for f in self.faults:
                if f.times > 0 and f.match.search(line):
                    f.times -= 1
                    f.hits += 1
                    return f
        return None

    def note(self, method, path, size, wrong):
        with self.lock:
            self.seen.append((method, urllib.parse.unquote(path), size, wrong))

    def count(self, method, match="."):
        """How many requests of that kind came since clear()."""
        with self.lock:
            return sum(m == method and bool(re.search(match, p)) for m, p, _, _ in self.seen)

    def close(self):
        self.closing.set()
        self.shutdown()
        self.server_close()


class S3:
    """The server, its gate and one bucket; `url` is the endpoint that clients are given."""

    def __init__(self, *buckets):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="ws3-", dir="/tmp"))
        self.key, self.secret, self.region, self.bucket = KEY, SECRET, REGION, BUCKET
        args = [a for b in (BUCKET, *buckets) for a in ("--configure-bucket", b)]
        self.log = open(self.dir / "log", "w+")
        (self.dir / "objects").mkdir()
        self.process = subprocess.Popen(
            ["node", install() / "node_modules/s3rver/bin/s3rver.js", "-d", self.dir / "objects", "-a", "127.0.0.1", "-p", "0",
             "-s", "--no-vhost-buckets", *args], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.gate = None
        try:
            self.gate = Gate(int(until(self.listening, "the S3 server", DEADLINE * 2)[1]))
        except BaseException:
            self.close()
            raise
        self.url = f"http://127.0.0.1:{self.gate.port}"

    def listening(self):
        text = (self.dir / "log").read_text()
        assert self.process.poll() is None, text
        return re.search(r"listening on 127\.0\.0\.1:(\d+)", text)

    def credentials(self, path):
        """A file as other clients of S3 read it."""
        path.write_text(f"[default]\naws_access_key_id = {self.key}\naws_secret_access_key = {self.secret}\n")
        path.chmod(0o600)
        return path

    def direct(self, method, path, body=None):
        """A request behind the gate, of the tests' own."""
        assert self.process.poll() is None, (self.dir / "log").read_text()[-3000:]
        conn = http.client.HTTPConnection("127.0.0.1", self.gate.upstream, timeout=DEADLINE)
        with self.gate.one, contextlib.closing(conn):
            conn.request(method, path, body=body)
            got = conn.getresponse()
            return got.status, got.read()

    def keys_of(self, prefix="", bucket=BUCKET):
        """{key: size} of what is there."""
        found, token = {}, ""
        while token is not None:
            more = f"&continuation-token={urllib.parse.quote(token)}" if token else ""
            status, body = self.direct("GET", f"/{bucket}?list-type=2&prefix={urllib.parse.quote(prefix, safe='')}{more}")
            assert status == 200, body
            tree = xml.etree.ElementTree.fromstring(re.sub(rb' xmlns="[^"]*"', b"", body))
            found.update({e.findtext("Key"): int(e.findtext("Size")) for e in tree.iter("Contents")})
            token = tree.findtext("NextContinuationToken")
        return found

    def get(self, key, bucket=BUCKET):
        status, body = self.direct("GET", f"/{bucket}/{urllib.parse.quote(key)}")
        return body if status == 200 else None

    def put(self, key, body, bucket=BUCKET):
        status, answer = self.direct("PUT", f"/{bucket}/{urllib.parse.quote(key)}", body)
        assert status == 200, answer

    def drop(self, key, bucket=BUCKET):
        self.direct("DELETE", f"/{bucket}/{urllib.parse.quote(key)}")

    def close(self):
        if self.gate:
            self.gate.close()
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture(scope="module")
def s3():
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("the S3 server is an npm package, and there is no npm here")
    server = S3()
    yield server
    server.close()
