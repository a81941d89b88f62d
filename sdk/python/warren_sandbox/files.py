"""Files in a sandbox. Paths are absolute or relative to the user's home."""
from __future__ import annotations

import base64
import json
import os
import re
from typing import (Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Mapping, Optional,
                    Sequence, Tuple, Union)

from . import _archive
from ._http import Lines, Response, Transport, given
from .errors import ApiError, ProtocolError, error_of
from .models import Entry, FileEvent, FileUsage, ReplaceResult, SearchResult, WriteResult

Data = Union[bytes, bytearray, memoryview, str, BinaryIO, Iterable[bytes]]
Paths = Union[str, Sequence[str]]
_BYTES = {"Content-Type": "application/octet-stream"}


def body_of(data: Data) -> Tuple[Any, Dict[str, str]]:
    """What to send, and its length where it is known. What can be sent again is a function."""
    if isinstance(data, str):
        data = data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), {}
    read = getattr(data, "read", None)
    if read is None:
        return data, {}
    file: Any = data
    try:
        start = file.tell()
        size = file.seek(0, os.SEEK_END) - start
        file.seek(start)
    except (AttributeError, OSError, ValueError):
        return iter(lambda: read(1 << 16), b""), {}

    def again() -> Iterator[bytes]:
        file.seek(start)
        return iter(lambda: file.read(1 << 16), b"")
    return again, {"Content-Length": str(size)}


def _mode(mode: Union[int, str, None]) -> Optional[str]:
    return f"{mode:04o}" if isinstance(mode, int) else mode


class Watch:
    """Changes below a path, as they happen. Ready when ``files.watch`` returns."""

    def __init__(self, lines: Lines):
        self._lines = lines
        first = next(lines, None)
        if not first or first.get("type") != "ready":
            lines.close()
            raise ProtocolError(f"a watch must begin with 'ready', not {first!r}")

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> FileEvent:
        return FileEvent.of(next(self._lines))

    def close(self) -> None:
        self._lines.close()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class PolledWatch:
    """A watch that the daemon keeps between polls, for clients that cannot hold a stream."""

    def __init__(self, transport: Transport, path: str, number: int):
        self._transport, self._path, self.number = transport, f"{path}/{number}", number
        self.dropped = 0

    def poll(self, wait_s: float = 0) -> List[FileEvent]:
        """What happened since the last poll; waits up to ``wait_s`` (60 at most) for the first."""
        answer = self._transport.call("GET", self._path, query={"wait_s": wait_s},
                                      timeout=wait_s + 60)
        self.dropped += answer.get("dropped", 0)
        return [FileEvent.of(e) for e in answer["events"]]

    def close(self) -> None:
        self._transport.call("DELETE", self._path)

    def __enter__(self) -> "PolledWatch":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Files:
    """``sandbox.files``. Every method takes ``user``: on whose behalf, by default the sandbox's."""

    def __init__(self, transport: Transport, base: str):
        self._transport, self._base = transport, base + "/files"

    def _get(self, what: str, **query: Any) -> Any:
        return self._transport.call("GET", f"{self._base}/{what}", query=query)

    def _post(self, what: str, members: Mapping[str, Any], **more: Any) -> Any:
        return self._transport.call("POST", f"{self._base}/{what}", given(**members), **more)

    # -- one file

    def open(self, path: str, *, start: Optional[int] = None, end: Optional[int] = None,
             user: Optional[str] = None) -> Response:
        """A file's bytes as a stream (``read``, ``chunks``, ``headers``); close it or use ``with``.
        ``start`` and ``end`` (exclusive) choose a range."""
        headers = {"Accept": "application/octet-stream"}
        if start is not None or end is not None:
            headers["Range"] = f"bytes={start or 0}-{'' if end is None else end - 1}"
        return self._transport.open("GET", self._base, query={"path": path, "user": user},
                                    headers=headers)

    def read(self, path: str, *, start: Optional[int] = None, end: Optional[int] = None,
             user: Optional[str] = None) -> bytes:
        """A file's bytes, or a range of them."""
        with self.open(path, start=start, end=end, user=user) as response:
            return response.read()

    def read_text(self, path: str, *, encoding: str = "utf-8", user: Optional[str] = None) -> str:
        """A file's text."""
        return self.read(path, user=user).decode(encoding)

    def download(self, path: str, to: Union[str, "os.PathLike[str]", BinaryIO], *,
                 user: Optional[str] = None) -> int:
        """A file into a local one (a path or an open file); answers its size."""
        if not hasattr(to, "write"):
            with open(os.fspath(to), "wb") as file:  # type: ignore[arg-type]
                return self.download(path, file, user=user)
        size = 0
        for data in self.open(path, user=user).chunks():
            to.write(data)  # type: ignore[union-attr]
            size += len(data)
        return size

    def write(self, path: str, data: Data, *, mode: Union[int, str, None] = None,
              parents: Optional[bool] = None, if_match: Optional[str] = None,
              only_new: bool = False, user: Optional[str] = None) -> Entry:
        """Make or replace a file, at once for everyone who looks. ``data`` is bytes, text, an open
        file or an iterable of bytes. ``if_match`` (an etag) and ``only_new`` refuse to overwrite
        what somebody else wrote (``Conflict``)."""
        return self._put(path, data, {"mode": _mode(mode), "parents": parents, "user": user},
                         {**({"If-Match": if_match} if if_match else {}),
                          **({"If-None-Match": "*"} if only_new else {})},
                         idempotent=not only_new and not if_match)

    def append(self, path: str, data: Data, *, user: Optional[str] = None) -> Entry:
        """Add to the end of a file, making it where it is missing."""
        return self._put(path, data, {"append": True, "user": user}, {}, idempotent=False)

    def _put(self, path: str, data: Data, query: Dict[str, Any], headers: Dict[str, str],
             idempotent: bool) -> Entry:
        body, length = body_of(data)
        return Entry.of(self._transport.call(
            "PUT", self._base, query={"path": path, **query}, body=body,
            headers={**_BYTES, **length, **headers}, idempotent=idempotent))

    def upload(self, local: Union[str, "os.PathLike[str]"], path: str, *,
               user: Optional[str] = None) -> Entry:
        """A local file into the sandbox, its execute bits kept."""
        with open(local, "rb") as file:
            mode = 0o644 | (os.fstat(file.fileno()).st_mode & 0o111)
            return self.write(path, file, mode=mode, user=user)

    def remove(self, path: str, *, recursive: bool = False, force: bool = False,
               user: Optional[str] = None) -> None:
        """Remove a file or an empty directory; ``recursive`` a tree; ``force``: fine if not there."""
        self._transport.call("DELETE", self._base, query={
            "path": path, "user": user, "recursive": recursive or None, "force": force or None})

    def stat(self, path: str, *, follow: Optional[bool] = None, user: Optional[str] = None) -> Entry:
        """What is at a path. ``follow=False``: of a link itself."""
        return Entry.of(self._get("stat", path=path, follow=follow, user=user))

    def exists(self, path: str, *, user: Optional[str] = None) -> bool:
        try:
            self.stat(path, follow=False, user=user)
        except ApiError as e:
            if e.code in ("file_not_found", "not_a_directory"):
                return False
            raise
        return True

    def touch(self, path: str, *, user: Optional[str] = None) -> Entry:
        """Make an empty file where there is none."""
        return self.append(path, b"", user=user)

    # -- directories

    def list(self, path: str = ".", *, depth: int = 1, user: Optional[str] = None) -> List[Entry]:
        """What is in a directory; ``depth`` levels of it."""
        return list(self.iter(path, depth=depth, user=user))

    def iter(self, path: str = ".", *, depth: int = 1, user: Optional[str] = None
             ) -> Iterator[Entry]:
        """The same, a page at a time."""
        cursor = None
        while True:
            page = self._get("list", path=path, depth=depth, user=user, cursor=cursor, limit=1000)
            for entry in page["entries"]:
                yield Entry.of(entry)
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def mkdir(self, path: str, *, mode: Union[int, str, None] = None, parents: bool = True,
              exist_ok: bool = True, user: Optional[str] = None) -> Entry:
        return Entry.of(self._post("mkdir", dict(path=path, mode=_mode(mode), parents=parents,
                                                 exist_ok=exist_ok, user=user)))

    def move(self, source: str, to: str, *, overwrite: Optional[bool] = None,
             parents: Optional[bool] = None, user: Optional[str] = None) -> Entry:
        return Entry.of(self._post("move", {"from": source, "to": to, "overwrite": overwrite,
                                            "parents": parents, "user": user}))

    def copy(self, source: str, to: str, *, overwrite: Optional[bool] = None,
             recursive: Optional[bool] = None, parents: Optional[bool] = None,
             user: Optional[str] = None) -> Entry:
        return Entry.of(self._post("copy", {"from": source, "to": to, "overwrite": overwrite,
                                            "recursive": recursive, "parents": parents,
                                            "user": user}))

    def chmod(self, path: str, mode: Union[int, str], *, recursive: Optional[bool] = None,
              user: Optional[str] = None) -> Entry:
        return Entry.of(self._post("chmod", dict(path=path, mode=_mode(mode), recursive=recursive,
                                                 user=user)))

    def chown(self, path: str, owner: str, *, recursive: Optional[bool] = None,
              follow: Optional[bool] = None, user: Optional[str] = None) -> Entry:
        """``owner`` is ``user`` or ``user:group``."""
        return Entry.of(self._post("chown", dict(path=path, owner=owner, recursive=recursive,
                                                 follow=follow, user=user)))

    def symlink(self, path: str, target: str, *, user: Optional[str] = None) -> Entry:
        return Entry.of(self._post("symlink", dict(path=path, target=target, user=user)))

    def readlink(self, path: str, *, user: Optional[str] = None) -> str:
        return str(self._get("readlink", path=path, user=user)["target"])

    def truncate(self, path: str, size: int = 0, *, user: Optional[str] = None) -> Entry:
        return Entry.of(self._post("truncate", dict(path=path, size=size, user=user)))

    def usage(self, path: str = ".", *, user: Optional[str] = None) -> FileUsage:
        """How much a tree holds."""
        return FileUsage.of(self._get("usage", path=path, user=user))

    # -- extended attributes

    def xattrs(self, path: str, *, user: Optional[str] = None) -> Dict[str, bytes]:
        """Extended attributes by name."""
        answer = self._get("xattrs", path=path, user=user)
        values = {k: v.encode() for k, v in (answer.get("xattrs") or {}).items()}
        values.update({k: base64.b64decode(v)
                       for k, v in (answer.get("xattrs_b64") or {}).items()})
        return values

    def set_xattr(self, path: str, name: str, value: Union[str, bytes], *,
                  user: Optional[str] = None) -> None:
        coded = {"value": value} if isinstance(value, str) else \
            {"value_b64": base64.b64encode(value).decode()}
        self._transport.call("PUT", self._base + "/xattrs",
                             given(path=path, name=name, user=user, **coded))

    def remove_xattr(self, path: str, name: str, *, user: Optional[str] = None) -> None:
        self._transport.call("DELETE", self._base + "/xattrs",
                             query={"path": path, "name": name, "user": user})

    # -- looking for things

    def find(self, path: str = ".", name: Paths = "*", *, type: Optional[str] = None,
             limit: Optional[int] = None, user: Optional[str] = None) -> List[Entry]:
        """Entries below a path whose name matches one of the patterns (``*.py``)."""
        names = [name] if isinstance(name, str) else list(name)
        answer = self._get("find", path=path, name=names, type=type, limit=limit, user=user)
        return [Entry.of(e) for e in answer["entries"]]

    @staticmethod
    def _where(paths: Paths) -> Dict[str, Any]:
        return {"path": paths} if isinstance(paths, str) else {"paths": list(paths)}

    def search(self, paths: Paths, text: str, *, regex: Optional[bool] = None,
               ignore_case: Optional[bool] = None, include: Optional[Sequence[str]] = None,
               limit: Optional[int] = None, user: Optional[str] = None) -> SearchResult:
        """Where a text (or regular expression) is in files and trees."""
        return SearchResult.of(self._post("search", {
            **self._where(paths), "text": text, "regex": regex, "ignore_case": ignore_case,
            "include": list(include) if include else None, "limit": limit, "user": user}))

    def replace(self, paths: Paths, text: str, replacement: str, *, regex: Optional[bool] = None,
                ignore_case: Optional[bool] = None, include: Optional[Sequence[str]] = None,
                dry_run: Optional[bool] = None, user: Optional[str] = None) -> ReplaceResult:
        """Put another text in its place; ``dry_run`` only says where."""
        return ReplaceResult.of(self._post("replace", {
            **self._where(paths), "text": text, "replacement": replacement, "regex": regex,
            "ignore_case": ignore_case, "include": list(include) if include else None,
            "dry_run": dry_run, "user": user}))

    # -- many at once

    def archive(self, path: str, format: str = "tar", *, user: Optional[str] = None) -> Response:
        """A file or tree as a stream: ``tar``, ``tar.gz``, ``tar.zst`` or ``zip``."""
        return self._transport.open("GET", self._base + "/archive", headers={"Accept": "*/*"},
                                    query={"path": path, "format": format, "user": user})

    def unpack(self, path: str, data: Data, *, format: Optional[str] = None,
               user: Optional[str] = None) -> WriteResult:
        """Unpack an archive under a directory while it is sent."""
        body, length = body_of(data)
        return WriteResult.of(self._transport.call(
            "PUT", self._base + "/archive", query={"path": path, "format": format, "user": user},
            body=body, headers={**_BYTES, **length}))

    def upload_dir(self, local: Union[str, "os.PathLike[str]"], path: str, *,
                   wanted: Optional[Callable[[str], bool]] = None, compress: bool = False,
                   user: Optional[str] = None) -> WriteResult:
        """A local directory's content into one of the sandbox, as one stream. ``wanted`` is asked
        about each relative path; ``compress`` pays on slow links."""
        top = os.fspath(local)

        def blocks() -> Iterator[bytes]:
            tar = _archive.tar_of_directory(top, wanted)
            return _archive.gzipped(tar) if compress else tar
        return WriteResult.of(self._transport.call(
            "PUT", self._base + "/archive", body=blocks, headers=_BYTES, timeout=None,
            query={"path": path, "format": "tar.gz" if compress else "tar", "user": user}))

    def download_dir(self, path: str, local: Union[str, "os.PathLike[str]"], *,
                     user: Optional[str] = None) -> Tuple[int, int, List[str]]:
        """A directory's content into a local one: ``(files, bytes, left out)``. What the sandbox
        sends is not trusted: nothing is written outside, and links that lead out are left out."""
        with self.archive(path, user=user) as response:
            return _archive.unpack(response, os.fspath(local))  # type: ignore[arg-type]

    def write_many(self, files: Mapping[str, _archive.Content], *, mode: int = 0o644,
                   user: Optional[str] = None) -> WriteResult:
        """Many files, with their directories, in one request."""
        total = WriteResult()
        groups: Dict[str, Dict[str, _archive.Content]] = {}
        for path, content in files.items():
            groups.setdefault("/" if path.startswith("/") else ".", {})[path.lstrip("/")] = content
        for top, some in groups.items():
            done = self._transport.call(
                "POST", self._base + "/write", query={"path": top, "user": user}, timeout=None,
                body=_archive.tar_of_contents(some, mode),
                headers={"Content-Type": "application/x-tar"})
            total.files += done["files"]
            total.bytes += done["bytes"]
            total.entries += done.get("entries") or []
        return total

    def read_many(self, paths: Sequence[str], *, user: Optional[str] = None
                  ) -> Dict[str, Union[bytes, ApiError]]:
        """Many files in one request, by path. One that cannot be read is its error, not raised."""
        answer: Dict[str, Union[bytes, ApiError]] = {}
        with self._transport.open("POST", self._base + "/read", idempotent=True,
                                  body=json.dumps(given(paths=list(paths), user=user)).encode(),
                                  headers={"Content-Type": "application/json",
                                           "Accept": "multipart/mixed"}) as response:
            kind = response.headers.get("Content-Type", "")
            for path, value in parse_multipart(response.read(), kind, paths):
                answer[path] = value
        return answer

    # -- changes

    def watch(self, path: str = ".", *, recursive: bool = False, user: Optional[str] = None
              ) -> Watch:
        """Changes as a stream: ``with files.watch("src", recursive=True) as w: for e in w: …``"""
        return Watch(self._transport.lines("GET", self._base + "/watch", query={
            "path": path, "recursive": recursive or None, "user": user}))

    def start_watch(self, path: str = ".", *, recursive: bool = False, user: Optional[str] = None
                    ) -> PolledWatch:
        """Changes by polling; it ends by itself ten minutes after the last poll."""
        answer = self._post("watches", dict(path=path, recursive=recursive or None, user=user))
        return PolledWatch(self._transport, self._base + "/watches", int(answer["watch"]))


def parse_multipart(body: bytes, content_type: str, paths: Sequence[str]
                    ) -> Iterator[Tuple[str, Union[bytes, ApiError]]]:
    """The parts of a bulk read, each under the path that was asked for; what a directory among them
    brought is under its own."""
    found = re.search(r'boundary="?([^";]+)"?', content_type)
    if not content_type.startswith("multipart/") or not found:
        raise ProtocolError(f"a bulk read answered {content_type!r}")
    mark = b"--" + found.group(1).encode()
    at, left = body.find(mark), list(paths)
    while at >= 0 and not body.startswith(mark + b"--", at):
        end_of_head = body.find(b"\r\n\r\n", at)
        if end_of_head < 0:
            at = -1
            break
        head = _part_headers(body[at + len(mark):end_of_head])
        start = end_of_head + 4
        size = head.get("content-length", "")
        stop = start + int(size) if size.isdigit() else body.find(b"\r\n" + mark, start)
        at = -1 if stop < start else body.find(mark, stop)
        if at >= 0:
            yield _asked_for(_part_name(head), left), _part_value(head, body[start:stop])
    if at < 0:
        raise ProtocolError("a bulk read's answer was cut short")


def _part_headers(head: bytes) -> Dict[str, str]:
    lines = head.decode("utf-8", "replace").split("\r\n")
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}


def _part_name(head: Mapping[str, str]) -> str:
    """What stands in the quotes: a backslash before quotes, control characters as percent codes."""
    found = re.search(r'filename="((?:[^"\\]|\\.)*)"', head.get("content-disposition", ""))
    if not found:
        raise ProtocolError("a part of a bulk read has no name")
    return re.sub(r"\\(.)|%([01][0-9A-F]|7F)",
                  lambda m: m.group(1) or chr(int(m.group(2), 16)), found.group(1))


def _asked_for(name: str, left: List[str]) -> str:
    for path in left:
        plain = path.rstrip("/")
        if name == plain or (not path.startswith("/") and name.endswith("/" + plain)):
            left.remove(path)
            return path
    return name


def _part_value(head: Mapping[str, str], data: bytes) -> Union[bytes, ApiError]:
    code = head.get("x-warren-error")
    if not code:
        return data
    try:
        error = json.loads(data)
    except ValueError:
        error = {"code": code, "message": data.decode("utf-8", "replace")}
    return error_of(404 if code.endswith("_not_found") else 403 if code == "permission_denied"
                    else 400, error)
