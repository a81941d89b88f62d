"""What the API answers, as dataclasses. Members that this version does not know are in ``raw``."""
from __future__ import annotations

import base64
import dataclasses
import datetime
import re
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar, Union

T = TypeVar("T", bound="Model")

# What a sandbox may reach: "none", "agents", "open", or {"rules": ["allow *.example.com 443", …]}; with a
# proxy, {"preset": "open", "proxy": "socks5://…"} or rules beside it.
Network = Union[str, Dict[str, Any]]

# A secret that requests carry: {"secret": "openai", "host": "api.openai.com", "as": "bearer"}, or one
# line, "openai@api.openai.com/v1/* as=bearer". What a sandbox tells back are mappings.
Binding = Union[str, Mapping[str, Any]]

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$")


def parse_time(text: Optional[str]) -> Optional[datetime.datetime]:
    """RFC 3339, with any number of decimals."""
    if text is None:
        return None
    found = _TIME.match(text)
    if not found:
        raise ValueError(f"not a time: {text!r}")
    zone = "+00:00" if found.group(3) == "Z" else found.group(3)
    micro = (found.group(2) or "0")[:6].ljust(6, "0")
    return datetime.datetime.fromisoformat(f"{found.group(1)}.{micro}{zone}")


@dataclasses.dataclass
class Model:
    """An object of the API."""

    raw: Dict[str, Any] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls: Type[T], value: Mapping[str, Any]) -> T:
        types = {f.name: str(f.type) for f in dataclasses.fields(cls) if f.name != "raw"}
        known = {k: parse_time(v) if "datetime" in types[k] else v
                 for k, v in value.items() if k in types}
        return cls(raw=dict(value), **known)


@dataclasses.dataclass
class SandboxInfo(Model):
    """A sandbox as it was when asked."""

    id: str = ""
    name: Optional[str] = None
    state: str = ""
    image: str = ""
    template: Optional[str] = None
    checkpoint: Optional[str] = None
    forked_from: Optional[str] = None
    cpus: float = 0
    memory_mb: int = 0
    disk_mb: int = 0
    pids: int = 0
    nofile: int = 0
    env: Dict[str, str] = dataclasses.field(default_factory=dict)
    metadata: Dict[str, str] = dataclasses.field(default_factory=dict)
    network: Network = "none"
    network_limits: Dict[str, Any] = dataclasses.field(default_factory=dict)
    bindings: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    volumes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    preview: str = "public"
    wake: str = "auto"
    restart: str = "no"
    user: str = ""
    workdir: Optional[str] = None
    timeout_s: Optional[float] = None
    on_timeout: str = ""
    idle_timeout_s: Optional[float] = None
    on_idle: str = ""
    freeze_after_s: Optional[float] = None
    checkpoints: Optional[Dict[str, Any]] = None
    frozen_at: Optional[datetime.datetime] = None
    awake_until: Optional[datetime.datetime] = None
    created_at: Optional[datetime.datetime] = None
    started_at: Optional[datetime.datetime] = None
    stopped_at: Optional[datetime.datetime] = None
    expires_at: Optional[datetime.datetime] = None
    last_active_at: Optional[datetime.datetime] = None
    stop_cause: Optional[str] = None


@dataclasses.dataclass
class Lease(Model):
    """Somebody's word that a sandbox is needed: it is not idle before ``expires_at``."""

    id: str = ""
    reason: str = ""
    created_at: Optional[datetime.datetime] = None
    expires_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class SandboxUsage(Model):
    """What a sandbox uses at this moment."""

    cpu_us: int = 0
    memory_bytes: int = 0
    memory_peak_bytes: int = 0
    disk_bytes: int = 0
    pids: int = 0
    oom_kills: int = 0


@dataclasses.dataclass
class NetworkEntry(Model):
    """What a sandbox tried to reach: a connection, or a name that was denied (``kind`` ``dns``)."""

    number: int = 0
    time: Optional[datetime.datetime] = None
    kind: str = ""
    protocol: str = ""
    name: Optional[str] = None
    address: Optional[str] = None
    port: Optional[int] = None
    verdict: str = ""
    reason: str = ""
    rule: Optional[str] = None
    error: Optional[str] = None
    hint: Optional[str] = None
    program: Optional[str] = None
    binding: Optional[str] = None
    open: bool = False
    sent_bytes: int = 0
    received_bytes: int = 0

    @property
    def denied(self) -> bool:
        return self.verdict == "denied"


@dataclasses.dataclass
class Port(Model):
    """What listens in a sandbox, and where it is reached from outside."""

    port: int = 0
    address: str = ""
    protocol: str = ""
    program: Optional[str] = None
    url: Optional[str] = None


@dataclasses.dataclass
class PreviewToken(Model):
    """Lets its bearer into a sandbox's previews. ``token`` and ``url`` are told once, by who makes it."""

    id: str = ""
    sandbox: str = ""
    port: Optional[int] = None
    data: Optional[Dict[str, Any]] = None
    token: Optional[str] = dataclasses.field(default=None, repr=False)
    url: Optional[str] = dataclasses.field(default=None, repr=False)
    created_at: Optional[datetime.datetime] = None
    expires_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class Name(Model):
    """A name of one's own that leads to a port of a sandbox."""

    name: str = ""
    sandbox: str = ""
    port: int = 0
    certificate: Optional[Dict[str, Any]] = None
    created_at: Optional[datetime.datetime] = None


def _bytes_of(value: Mapping[str, Any], name: str) -> bytes:
    coded = value.get(name + "_b64")
    return base64.b64decode(coded) if coded is not None else (value.get(name) or "").encode()


@dataclasses.dataclass
class Result(Model):
    """How a command ended, and what it printed."""

    exit_code: int = 0
    signal: Optional[str] = None
    reason: str = "exit"
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    truncated: bool = False
    duration_ms: float = 0
    process: Optional[int] = None
    pid: Optional[int] = None
    cpu_us: int = 0

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Result":
        return super().of({**value, "stdout_bytes": _bytes_of(value, "stdout"),
                           "stderr_bytes": _bytes_of(value, "stderr")})

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """It ended by itself with exit code 0."""
        return self.exit_code == 0 and self.reason == "exit"


@dataclasses.dataclass
class ExecEvent(Model):
    """One line of a command's stream: ``start``, ``stdout``, ``stderr``, ``dropped`` or ``exit``."""

    type: str = ""
    data: bytes = b""
    offset: Optional[int] = None
    dropped: Optional[int] = None
    process: Optional[int] = None
    pid: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Optional[str] = None
    reason: Optional[str] = None
    duration_ms: Optional[float] = None
    cpu_us: Optional[int] = None

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "ExecEvent":
        return super().of({**value, "data": _bytes_of(value, "data"), "dropped": value.get("bytes")})

    @property
    def text(self) -> str:
        """The bytes as text; a character that is cut in two becomes a replacement character."""
        return self.data.decode("utf-8", "replace")

    @property
    def end(self) -> Optional[int]:
        """The offset of the first byte after this event."""
        if self.offset is None:
            return None
        return self.offset + (self.dropped or 0 if self.type == "dropped" else len(self.data))


@dataclasses.dataclass
class ProcessInfo(Model):
    """A process in a sandbox. ``process`` is its number in the API, ``pid`` the kernel's."""

    process: Optional[int] = None
    pid: int = 0
    ppid: Optional[int] = None
    argv: List[str] = dataclasses.field(default_factory=list)
    label: Optional[str] = None
    user: Optional[str] = None
    state: str = ""
    started_at: Optional[datetime.datetime] = None
    ended_at: Optional[datetime.datetime] = None
    exit_code: Optional[int] = None
    signal: Optional[str] = None
    reason: Optional[str] = None
    cpu_us: Optional[int] = None
    rss_bytes: Optional[int] = None
    output_bytes: Optional[int] = None
    pty: Any = None


@dataclasses.dataclass
class Entry(Model):
    """A file, directory or link in a sandbox."""

    name: str = ""
    path: str = ""
    type: str = ""
    size: int = 0
    mode: str = ""
    permissions: str = ""
    uid: int = 0
    gid: int = 0
    owner: Optional[str] = None
    group: Optional[str] = None
    modified_at: Optional[datetime.datetime] = None
    accessed_at: Optional[datetime.datetime] = None
    changed_at: Optional[datetime.datetime] = None
    inode: int = 0
    links: int = 0
    disk_bytes: int = 0
    target: Optional[str] = None
    etag: Optional[str] = None


@dataclasses.dataclass
class Match(Model):
    """A place where a text was found: ``line`` and ``column`` count from 1."""

    path: str = ""
    line: int = 0
    column: int = 0
    offset: int = 0
    text: str = ""


@dataclasses.dataclass
class SearchResult(Model):
    """What a search found; ``truncated`` where there is more than the limit."""

    matches: List[Match] = dataclasses.field(default_factory=list)
    files: int = 0
    truncated: bool = False
    skipped: List[Any] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "SearchResult":
        return super().of({**value, "matches": [Match.of(m) for m in value.get("matches", [])]})


@dataclasses.dataclass
class ReplaceResult(Model):
    """What a replacement changed (or, on a dry run, would change)."""

    changed: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    files: int = 0
    count: int = 0
    skipped: List[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class FileUsage(Model):
    """The sum of a directory tree."""

    disk_bytes: int = 0
    size: int = 0
    files: int = 0
    directories: int = 0


@dataclasses.dataclass
class WriteResult(Model):
    """What a bulk write or an unpacked archive made."""

    files: int = 0
    bytes: int = 0
    entries: List[Dict[str, Any]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class FileEvent(Model):
    """A change of a watched file: ``create``, ``write``, ``remove``, ``rename``, ``chmod``, ``overflow``."""

    type: str = ""
    path: Optional[str] = None
    to: Optional[str] = None
    entry: Optional[Entry] = None
    time: Optional[datetime.datetime] = None

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "FileEvent":
        entry = value.get("entry")
        return super().of({**value, "entry": Entry.of(entry) if entry else None})


@dataclasses.dataclass
class Image(Model):
    """An image that sandboxes can be made from."""

    name: str = ""
    id: Optional[str] = None
    digest: Optional[str] = None
    size_bytes: int = 0
    shared_bytes: int = 0
    layers: int = 0
    os: Optional[str] = None
    architecture: Optional[str] = None
    created_at: Optional[datetime.datetime] = None
    public: bool = False
    team: Optional[str] = None
    config: Dict[str, Any] = dataclasses.field(default_factory=dict)
    layer_list: List[Dict[str, Any]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Template(Model):
    """A named way to make sandboxes: an image, its limits, a start command and when it is ready."""

    name: str = ""
    image: str = ""
    start_command: Any = None
    ready: Optional[Dict[str, Any]] = None
    ready_timeout_s: Optional[float] = None
    env: Dict[str, str] = dataclasses.field(default_factory=dict)
    ports: List[int] = dataclasses.field(default_factory=list)
    network: Network = "none"
    bindings: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    user: Optional[str] = None
    workdir: Optional[str] = None
    cpus: Optional[float] = None
    memory_mb: Optional[int] = None
    disk_mb: Optional[int] = None
    pids: Optional[int] = None
    warm: int = 0
    public: bool = False
    ready_sandboxes: Optional[int] = None
    memory_kept: Optional[bool] = None
    created_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class Change(Model):
    """A file that differs; ``text`` are the hunks of a unified diff, where they were asked for."""

    path: str = ""
    change: str = ""
    type: str = ""
    size_bytes: int = 0
    size_before_bytes: int = 0
    mode: Optional[str] = None
    mode_before: Optional[str] = None
    modified_at: Optional[datetime.datetime] = None
    text: Optional[str] = None
    text_state: Optional[str] = None


@dataclasses.dataclass
class Comparison(Model):
    """How two states differ; ``more``: not all are in ``changes``, all are counted."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    bytes: int = 0
    more: bool = False
    changes: List[Change] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Comparison":
        made = super().of(value)
        made.changes = [Change.of(c) for c in value["changes"]]
        return made


@dataclasses.dataclass
class VolumeInfo(Model):
    """A volume as it was when asked; ``used_bytes`` where one is asked for alone."""

    id: str = ""
    name: str = ""
    kind: str = "files"
    bucket: Optional[Dict[str, Any]] = None
    size_mb: int = 0
    sandboxes: int = 0
    used_bytes: Optional[int] = None
    created_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class VolumeCheckpoint(Model):
    """A volume's files as they were; ``frozen_ms`` is told when it is made."""

    id: str = ""
    volume: str = ""
    name: Optional[str] = None
    comment: str = ""
    disk_bytes: int = 0
    created_at: Optional[datetime.datetime] = None
    frozen_ms: Optional[float] = None


@dataclasses.dataclass
class Checkpoint(Model):
    """A sandbox's files, and with ``memory`` its processes, as they were; ``frozen_ms`` is told when it is made."""

    id: str = ""
    sandbox: str = ""
    parent: Optional[str] = None
    name: Optional[str] = None
    comment: str = ""
    reason: str = ""
    metadata: Dict[str, str] = dataclasses.field(default_factory=dict)
    disk_bytes: int = 0
    memory: bool = False
    memory_bytes: int = 0
    created_at: Optional[datetime.datetime] = None
    local: bool = True
    archived_at: Optional[datetime.datetime] = None
    frozen_ms: Optional[float] = None


@dataclasses.dataclass
class Secret(Model):
    """What is known of a secret; its value is not shown."""

    id: str = ""
    name: str = ""
    version: int = 0
    metadata: Dict[str, str] = dataclasses.field(default_factory=dict)
    created_at: Optional[datetime.datetime] = None
    updated_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class Key(Model):
    """An API key; ``key`` itself is shown once, by ``create``."""

    id: str = ""
    name: str = ""
    key: Optional[str] = None
    team: Optional[str] = None
    role: Optional[str] = None
    created_at: Optional[datetime.datetime] = None
    last_used_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class Team(Model):
    """A team: what its sandboxes may use together, and what they use now."""

    name: str = ""
    quotas: Dict[str, Any] = dataclasses.field(default_factory=dict)
    in_use: Dict[str, Any] = dataclasses.field(default_factory=dict)
    disk: Dict[str, int] = dataclasses.field(default_factory=dict)
    created_at: Optional[datetime.datetime] = None


@dataclasses.dataclass
class Usage(Model):
    """What a team's sandboxes used in a span of time."""

    team: Optional[str] = None
    total: Dict[str, float] = dataclasses.field(default_factory=dict)
    sandboxes: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    steps: List[Dict[str, Any]] = dataclasses.field(default_factory=list)
    next_cursor: Optional[str] = None


@dataclasses.dataclass
class Event(Model):
    """A line of the change feed; ``seq`` grows."""

    seq: int = 0
    time: Optional[datetime.datetime] = None
    type: str = ""
    sandbox: Optional[str] = None
    data: Dict[str, Any] = dataclasses.field(default_factory=dict)
