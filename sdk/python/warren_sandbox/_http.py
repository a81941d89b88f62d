"""Requests over HTTP or a unix socket: connections that are kept, retries, answers that stream."""
from __future__ import annotations

import contextlib
import http.client
import json
import random
import select
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

from .errors import ConnectionFailed, ProtocolError, RequestTimeout, WarrenError, error_of

Body = Union[bytes, Iterable[bytes], Callable[[], Iterable[bytes]], None]
Query = Mapping[str, Any]

_BROKEN = (ConnectionError, http.client.HTTPException, socket.gaierror, ssl.SSLError)
_IDEMPOTENT = {"GET", "HEAD", "PUT", "DELETE"}
_LONGEST_PAUSE = 30.0
_IDLE_KEPT = 8


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Response:
    """An answer whose body may still be on its way. Close it, or read it to the end."""

    def __init__(self, transport: "Transport", connection: http.client.HTTPConnection,
                 raw: http.client.HTTPResponse):
        self._transport, self._connection, self._raw = transport, connection, raw
        self._open = True
        self.status = raw.status
        self.headers = raw.headers

    def read(self, size: Optional[int] = None) -> bytes:
        """The rest of the body, or up to ``size`` bytes of it (``b""`` at the end)."""
        with _translated():
            data = self._raw.read() if size is None or size < 0 else self._raw.read(size)
        # Asking an HTTPResponse for more than there is ends quietly when the peer went away.
        if not data or size is None or size < 0:
            if self._raw.length not in (None, 0):
                self.close()
                raise ConnectionFailed("the connection broke in the middle of an answer")
            self._give_back()
        return data

    def readline(self) -> bytes:
        with _translated():
            line = self._raw.readline()
        if not line:
            self._give_back()
        return line

    def chunks(self, size: int = 1 << 16) -> Iterator[bytes]:
        with self:
            while True:
                data = self.read(size)
                if not data:
                    return
                yield data

    def json(self) -> Any:
        body = self.read()
        try:
            return json.loads(body) if body else None
        except ValueError:
            raise ProtocolError(f"not JSON (HTTP {self.status}): {body[:200]!r}") from None

    def lines(self) -> Iterator[Dict[str, Any]]:
        """One JSON object a line; pings are left out and an error line is raised."""
        with self:
            while True:
                line = self.readline()
                if not line:
                    return
                if not line.endswith(b"\n"):
                    raise ConnectionFailed("the connection broke in the middle of a line")
                try:
                    value = json.loads(line)
                except ValueError:
                    raise ProtocolError(f"not a line of JSON: {line[:200]!r}") from None
                kind = value.get("type")
                if kind == "error":
                    error = {k: v for k, v in value.items() if k != "type"}
                    raise error_of(404 if error.get("code") == "sandbox_gone" else 500, error)
                if kind != "ping":
                    yield value

    def _give_back(self) -> None:
        if self._open:
            self._open = False
            self._transport._give_back(self._connection, self._raw)

    def close(self) -> None:
        """Give up what has not been read."""
        if self._open:
            self._open = False
            # The response holds the socket too; a half-read one would keep it open.
            with contextlib.suppress(OSError, AttributeError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)
            self._raw.close()
            self._connection.close()

    def __enter__(self) -> "Response":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (socket.timeout, TimeoutError) as e:  # two classes before Python 3.10
        raise RequestTimeout("the daemon did not answer in time") from e
    except _BROKEN as e:
        raise ConnectionFailed(f"the connection broke: {e or type(e).__name__}") from e
    except OSError as e:
        raise ConnectionFailed(f"cannot reach the daemon: {e}") from e


class Transport:
    """Where the daemon is, who asks, and how patiently. Safe to share between threads."""

    def __init__(self, url: str, key: Optional[str], timeout: Optional[float] = 60.0,
                 retries: int = 3, team: Optional[str] = None,
                 context: Optional[ssl.SSLContext] = None):
        parts = urllib.parse.urlsplit(url if "://" in url else "unix://" + url
                                      if url.startswith("/") else "http://" + url)
        if parts.scheme not in ("http", "https", "unix"):
            raise ValueError(f"the address must begin with http://, https:// or unix://, not {url!r}")
        if parts.scheme != "unix" and not parts.hostname:
            raise ValueError(f"the address {url!r} names no host")
        self.url, self.key, self.team = url, key, team
        self.timeout, self.retries = timeout, retries
        self._parts, self._context = parts, context
        self._prefix = "" if parts.scheme == "unix" else parts.path.rstrip("/")
        self._idle: List[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    # -- connections

    def _connect(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        p = self._parts
        if p.scheme == "unix":
            return _UnixConnection(p.netloc + p.path, timeout)
        if p.scheme == "https":
            return http.client.HTTPSConnection(p.hostname or "", p.port, timeout=timeout,
                                               context=self._context)
        return http.client.HTTPConnection(p.hostname or "", p.port, timeout=timeout)

    def _take(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    return self._connect(timeout)
                connection = self._idle.pop()
            # One that has something to read while idle was closed by the daemon.
            sock = connection.sock
            if sock is not None and not select.select([sock], [], [], 0)[0]:
                sock.settimeout(timeout)
                connection.timeout = timeout
                return connection
            connection.close()

    def _give_back(self, connection: http.client.HTTPConnection,
                   raw: http.client.HTTPResponse) -> None:
        if raw.isclosed() and not raw.will_close and connection.sock is not None:
            with self._lock:
                if len(self._idle) < _IDLE_KEPT:
                    self._idle.append(connection)
                    return
        raw.close()
        connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # one that was never finished has no list
            self.close()

    # -- requests

    def _headers(self, extra: Optional[Mapping[str, str]]) -> Dict[str, str]:
        headers = {"User-Agent": "warren-sandbox-python/0.1.0", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self.team:
            headers["X-Warren-Team"] = self.team
        headers.update(extra or {})
        return headers

    def _once(self, method: str, target: str, body: Body, headers: Dict[str, str],
              timeout: Optional[float]) -> Response:
        connection = self._take(timeout)
        try:
            data = body() if callable(body) else body
            chunked = data is not None and not isinstance(data, bytes) \
                and "Content-Length" not in headers
            if chunked:
                headers = {**headers, "Transfer-Encoding": "chunked"}
            elif data is None and method in ("POST", "PUT", "PATCH"):
                headers = {**headers, "Content-Length": "0"}
            with _translated():
                try:
                    connection.request(method, target, body=data, headers=headers,
                                       encode_chunked=chunked)
                except (BrokenPipeError, ConnectionResetError):
                    # Refused before all of the body was sent: the answer may be there already.
                    if connection.sock is None:
                        raise
                return Response(self, connection, connection.getresponse())
        except BaseException:
            connection.close()
            raise

    def open(self, method: str, path: str, query: Optional[Query] = None, body: Body = None,
             headers: Optional[Mapping[str, str]] = None, timeout: Any = ...,
             idempotent: Optional[bool] = None) -> Response:
        """Ask, with retries where they can do no harm; the answer is a success, unread."""
        target = self._prefix + path + encode_query(query)
        sent = self._headers(headers)
        safe = method in _IDEMPOTENT if idempotent is None else idempotent
        safe = safe or "Idempotency-Key" in sent
        replayable = body is None or isinstance(body, bytes) or callable(body)
        limit = self.timeout if timeout is ... else timeout
        attempt = 0
        while True:
            attempt += 1
            pause = min(0.1 * 2 ** attempt, 3.0) * (0.5 + random.random() / 2)
            try:
                response = self._once(method, target, body, sent, limit)
            except ConnectionFailed:
                if not safe or not replayable or attempt > self.retries:
                    raise
            else:
                if response.status < 400:
                    return response
                error = self._error(response)
                again = response.status == 429 or (response.status == 503 and safe)
                if not again or not replayable or attempt > self.retries:
                    if method == "DELETE" and attempt > 1 and response.status == 404:
                        return response  # the attempt that we did not hear of did it
                    raise error
                if error.retry_after is not None:
                    if error.retry_after > _LONGEST_PAUSE:
                        raise error
                    pause = error.retry_after
            time.sleep(pause)

    def _error(self, response: Response) -> Any:
        body = response.read()
        after = response.headers.get("Retry-After")
        try:
            error = json.loads(body)["error"]
            assert isinstance(error, dict)
        except (ValueError, KeyError, TypeError, AssertionError):
            text = body[:200].decode(errors="replace").strip()
            error = {"code": "http_error", "message": text or f"HTTP status {response.status}"}
        return error_of(response.status, error,
                        float(after) if after and after.isdigit() else None)

    def call(self, method: str, path: str, json_body: Any = None,
             seen: Optional[Dict[str, str]] = None, **more: Any) -> Any:
        """Ask with JSON, answer with JSON (``None`` for an empty answer); ``seen`` gets the headers."""
        if json_body is not None:
            more["body"] = json.dumps(json_body).encode()
            more["headers"] = {"Content-Type": "application/json", **(more.get("headers") or {})}
        with self.open(method, path, **more) as response:
            answer = response.json()
            if seen is not None:
                seen.update({k.lower(): v for k, v in response.headers.items()})
            return answer

    def lines(self, method: str, path: str, json_body: Any = None, **more: Any) -> "Lines":
        """Ask with JSON, answer with a stream of objects."""
        headers = {"Accept": "application/x-ndjson", **(more.pop("headers", None) or {})}
        if json_body is not None:
            more["body"] = json.dumps(json_body).encode()
            headers["Content-Type"] = "application/json"
        # A stream has a line every 15 s at least, be it a ping.
        more.setdefault("timeout", max(self.timeout, 45.0) if self.timeout else None)
        return Lines(self.open(method, path, headers=headers, **more))


class Lines:
    """The objects of a stream, as an iterator that can be closed early."""

    def __init__(self, response: Response):
        self.response = response
        self._lines = response.lines()

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> Dict[str, Any]:
        return next(self._lines)

    def close(self) -> None:
        self.response.close()

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def quote(part: str) -> str:
    """One segment of a path."""
    return urllib.parse.quote(str(part), safe="")


def encode_query(query: Optional[Query]) -> str:
    pairs: List[Tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    return "?" + urllib.parse.urlencode(pairs) if pairs else ""


def given(**members: Any) -> Dict[str, Any]:
    """The members that were given: those that are not ``None``."""
    return {k: v for k, v in members.items() if v is not None}


__all__ = ["Body", "Lines", "Query", "Response", "Transport", "WarrenError", "encode_query",
           "given", "quote"]
