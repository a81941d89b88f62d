"""Registries to pull from and push to: Debian's docker-registry on loopback, and one between it and the
daemon that breaks in the ways networks and strangers do."""
import base64
import contextlib
import gzip
import hashlib
import http.client
import http.server
import io
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tarfile
import tempfile
import threading
import urllib.parse
import warnings

import harness

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import crypt

OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker.distribution.manifest."
MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}.get(__import__("os").uname().machine, "amd64")


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    """docker-registry in a directory of its own; with `users`, behind a password."""

    def __init__(self, users=None, tls=False):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="wt-registry-"))
        self.port = harness.free_port()
        self.host = f"127.0.0.1:{self.port}"
        auth = ""
        if users:
            lines = [f"{u}:{crypt.crypt(p, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))}\n"
                     for u, p in users.items()]
            (self.dir / "htpasswd").write_text("".join(lines))
            auth = f"auth:\n  htpasswd:\n    realm: test\n    path: {self.dir}/htpasswd\n"
        self.tls = tls
        if tls:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                            "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                            "-keyout", f"{self.dir}/key", "-out", f"{self.dir}/cert"],
                           check=True, capture_output=True)
            auth += f"  tls:\n    certificate: {self.dir}/cert\n    key: {self.dir}/key\n"
        (self.dir / "config.yml").write_text(
            "version: 0.1\nlog:\n  level: warn\n"
            f"storage:\n  filesystem:\n    rootdirectory: {self.dir}/store\n  delete:\n    enabled: true\n"
            f"http:\n  addr: {self.host}\n{auth}")
        self.log = open(self.dir / "log", "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.dir / "config.yml")],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        harness.until(self.answers, "docker-registry")

    def answers(self):
        assert self.process.poll() is None, (self.dir / "log").read_text()
        with contextlib.suppress(OSError):
            return self.call("GET", "/v2/").status in (200, 401)

    def call(self, method, path, body=None, headers=None):
        if self.tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=harness.DEADLINE,
                                                     context=ssl._create_unverified_context())
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                    timeout=harness.DEADLINE)
        with contextlib.closing(connection):
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            return harness.Reply(response.status, response.headers, response.read())

    def put_blob(self, repo, data):
        start = self.call("POST", f"/v2/{repo}/blobs/uploads/")
        assert start.status == 202, start
        where = urllib.parse.urlsplit(start.headers["Location"])
        done = self.call("PUT", f"{where.path}?{where.query}&digest={sha(data)}", data,
                         {"Content-Type": "application/octet-stream"})
        assert done.status == 201, done
        return sha(data)

    def put_manifest(self, repo, tag, manifest, kind):
        text = json.dumps(manifest).encode()
        done = self.call("PUT", f"/v2/{repo}/manifests/{tag}", text, {"Content-Type": kind})
        assert done.status == 201, done
        return {"mediaType": kind, "digest": sha(text), "size": len(text)}

    def manifest(self, repo, tag):
        reply = self.call("GET", f"/v2/{repo}/manifests/{tag}", headers={
            "Accept": f"{OCI}manifest.v1+json, {OCI}index.v1+json, {DOCKER}v2+json"})
        return reply if reply.status == 200 else None

    def put_image(self, repo, layers, tag="latest", arch=MACHINE, config=None, packing="gzip"):
        """An image of these tars; answers its manifest's descriptor."""
        blobs = [packed(t, packing) for t in layers]
        document = json.dumps({
            "os": "linux", "architecture": arch, "config": config or {},
            "rootfs": {"type": "layers", "diff_ids": [sha(t) for t in layers]},
            "history": [{"created_by": f"layer {i}"} for i in range(len(layers))]}).encode()
        for blob in (*blobs, document):
            self.put_blob(repo, blob)
        suffix = {"gzip": "+gzip", "zstd": "+zstd", "none": ""}[packing]
        return self.put_manifest(repo, tag, {
            "schemaVersion": 2, "mediaType": f"{OCI}manifest.v1+json",
            "config": {"mediaType": f"{OCI}config.v1+json", "digest": sha(document),
                       "size": len(document)},
            "layers": [{"mediaType": f"{OCI}layer.v1.tar{suffix}", "digest": sha(b),
                        "size": len(b)} for b in blobs]}, f"{OCI}manifest.v1+json")

    def close(self):
        self.process.terminate()
        self.process.wait(harness.DEADLINE)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def packed(data, packing="gzip"):
    if packing == "gzip":
        return gzip.compress(data, 1, mtime=0)
    if packing == "zstd":
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE,
                              check=True).stdout
    return data


def tar_of(files):
    """Names to contents; None makes a directory. In a layer, a name that ends in .wh.x removes x."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            if data is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
            else:
                info.size, info.mode = len(data), 0o644
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Middle:
    """Stands between the daemon and a registry. `rules` are asked in turn for each request and may answer
    it (return True); what none of them takes is passed on. Every request is kept in `seen`."""

    def __init__(self, upstream=None):
        self.upstream = upstream
        self.rules, self.seen = [], []
        self.lock = threading.Lock()
        middle = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def handle_one(self):
                with middle.lock:
                    middle.seen.append((self.command, self.path, dict(self.headers)))
                n = int(self.headers.get("Content-Length", 0))
                self.body = self.rfile.read(n) if n else b""
                for rule in list(middle.rules):
                    if rule(self):
                        return
                middle.forward(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_one

            def answer(self, status, body=b"", **headers):
                if isinstance(body, (dict, list)):
                    body = json.dumps(body).encode()
                self.send_response(status)
                for k, v in headers.items():
                    self.send_header(k.replace("_", "-"), v)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                return True

            def cut(self):
                """End the connection now, whatever was announced."""
                self.wfile.flush()
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return True

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # a client that went away

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def fetch(self, handler, headers=None):
        """The registry's own answer to this request."""
        given = {k: v for k, v in handler.headers.items()
                 if k.lower() not in ("host", "content-length", "expect", "authorization")}
        given.update(headers or {})
        return self.upstream.call(handler.command, handler.path, handler.body or None, given)

    def forward(self, handler, headers=None):
        if not self.upstream:
            handler.answer(404)
            return
        reply = self.fetch(handler, headers)
        handler.send_response(reply.status)
        for k, v in reply.headers.items():
            if k.lower() == "location":
                v = v.replace(self.upstream.host, self.host)
            if k.lower() not in ("date", "server", "connection", "transfer-encoding"):
                handler.send_header(k, v)
        if "Content-Length" not in reply.headers:
            handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        handler.wfile.write(reply.body)

    def asked(self, method, part):
        with self.lock:
            return [(path, headers) for m, path, headers in self.seen
                    if m == method and part in path]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def blob_path(handler):
    """The digest, if this asks for a blob's bytes."""
    found = re.search(r"/blobs/(sha256:[0-9a-f]{64})$", handler.path)
    return found[1] if handler.command == "GET" and found else None


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
