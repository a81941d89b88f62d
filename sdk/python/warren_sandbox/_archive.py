"""Tar streams of local files, made without holding them, and unpacked without trusting them."""
from __future__ import annotations

import os
import stat
import tarfile
import zlib
from typing import BinaryIO, Callable, Iterable, Iterator, List, Mapping, Optional, Tuple, Union

Content = Union[bytes, str, BinaryIO]
_CHUNK = 1 << 16


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return b"\0" * (-size % tarfile.BLOCKSIZE)


def _file_blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Just as many bytes as the header says, also of a file that changes meanwhile."""
    left = size
    while left:
        data = file.read(min(left, _CHUNK))
        if not data:
            data = b"\0" * min(left, _CHUNK)
        left -= len(data)
        yield data
    yield _padding(size)


def tar_of_directory(top: str, wanted: Optional[Callable[[str], bool]] = None) -> Iterator[bytes]:
    """Everything below a directory, names relative to it; ``wanted`` may leave paths out."""
    for info, path in _walk(os.fspath(top), "", wanted):
        if info.isreg():
            with open(path, "rb") as file:
                info.size = os.fstat(file.fileno()).st_size
                yield _header(info)
                yield from _file_blocks(file, info.size)
        else:
            yield _header(info)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def _walk(top: str, inner: str, wanted: Optional[Callable[[str], bool]]
          ) -> Iterator[Tuple[tarfile.TarInfo, str]]:
    with os.scandir(os.path.join(top, inner)) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            name = f"{inner}/{entry.name}" if inner else entry.name
            if wanted and not wanted(name):
                continue
            status = entry.stat(follow_symlinks=False)
            info = tarfile.TarInfo(name)
            info.mode, info.mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
            if entry.is_symlink():
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(entry.path)
                yield info, entry.path
            elif entry.is_dir():
                info.type = tarfile.DIRTYPE
                yield info, entry.path
                yield from _walk(top, name, wanted)
            elif entry.is_file():
                yield info, entry.path


def tar_of_contents(files: Mapping[str, Content], mode: int = 0o644) -> Iterator[bytes]:
    """Files by name from bytes, text or file objects."""
    for name, content in files.items():
        info = tarfile.TarInfo(name)
        info.mode = mode
        if isinstance(content, str):
            content = content.encode()
        if not isinstance(content, (bytes, bytearray, memoryview)):
            content = content.read()
        info.size = len(content)
        yield _header(info)
        yield bytes(content)
        yield _padding(info.size)
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def gzipped(blocks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for block in blocks:
        data = packer.compress(block)
        if data:
            yield data
    yield packer.flush()


class _Place:
    """A directory that nothing is written outside of, whatever an archive says."""

    def __init__(self, top: str):
        os.makedirs(top, exist_ok=True)
        self.top = os.path.realpath(top)

    def path(self, name: str) -> Optional[str]:
        """Where a member goes, its directories made; ``None`` for one that would lie outside."""
        parts = [p for p in name.split("/") if p not in ("", ".")]
        if ".." in parts:
            return None
        if not parts:
            return self.top
        parent = self.top
        for part in parts[:-1]:
            parent = os.path.join(parent, part)
            if os.path.islink(parent):
                return None
            if not os.path.isdir(parent):
                os.mkdir(parent)
        return os.path.join(parent, parts[-1])

    def inside(self, link: str, target: str) -> bool:
        full = os.path.normpath(os.path.join(os.path.dirname(link), target))
        return not os.path.isabs(target) and (full + "/").startswith(self.top + "/")


def unpack(stream: BinaryIO, top: str) -> Tuple[int, int, List[str]]:
    """Unpack a tar that a sandbox made: files, directories and links that stay inside. Answers the
    number of files, their bytes, and the names of what was left out."""
    place, files, size, skipped = _Place(top), 0, 0, []
    with tarfile.open(fileobj=stream, mode="r|", errorlevel=2) as tar:
        for member in tar:
            path = place.path(member.name)
            if path is None or not _make(tar, member, path, place):
                skipped.append(member.name)
            elif member.isreg():
                files, size = files + 1, size + member.size
    return files, size, skipped


def _make(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, place: _Place) -> bool:
    if member.isdir():
        if os.path.islink(path) or (os.path.exists(path) and not os.path.isdir(path)):
            os.unlink(path)
        os.makedirs(path, exist_ok=True)
        return True
    if os.path.isdir(path) and not os.path.islink(path):
        return False
    if member.issym():
        if not place.inside(path, member.linkname):
            return False
        _remove(path)
        os.symlink(member.linkname, path)
        return True
    if member.islnk():
        source = place.path(member.linkname)
        if source is None or os.path.islink(source) or not os.path.isfile(source):
            return False
        _remove(path)
        os.link(source, path)
        return True
    if not member.isreg():
        return False
    _remove(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(handle, "wb") as out:
        source = tar.extractfile(member)
        while source is not None:
            data = source.read(_CHUNK)
            if not data:
                break
            out.write(data)
    # The owner's and the execute bits; never setuid, never writable by others.
    os.chmod(path, 0o644 | (member.mode & 0o111))
    os.utime(path, (member.mtime, member.mtime))
    return True


def _remove(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)
