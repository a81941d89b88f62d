"""A sandbox: a computer to run commands in."""
from __future__ import annotations

import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from ._http import Lines, Transport, given, quote
from .errors import ApiError, CommandError
from .files import Files
from ._noun import Noun, once
from .models import (Binding, Checkpoint, Image, Lease, Network, NetworkEntry, Port, PreviewToken, Result,
                     SandboxInfo, SandboxUsage)
from .process import Command, Events, Process, Processes, collect, spec_of


class Sandbox:
    """One sandbox. With ``with`` it is deleted at the end of the block."""

    def __init__(self, transport: Transport, info: SandboxInfo):
        self._transport, self.info = transport, info
        self.etag: Optional[str] = None  # of the last answer about it alone
        self._path = f"/v1/sandboxes/{quote(info.id)}"
        self.files = Files(transport, self._path)
        self.processes = Processes(transport, self._path)

    def __repr__(self) -> str:
        return f"<Sandbox {self.id} {self.state}>"

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def name(self) -> Optional[str]:
        return self.info.name

    @property
    def state(self) -> str:
        """As of the last answer; ``refresh`` asks again."""
        return self.info.state

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: Any) -> None:
        self.delete()

    # -- its life

    def _ask(self, method: str, what: str, members: Optional[Dict[str, Any]] = None,
             if_match: Optional[str] = None) -> SandboxInfo:
        seen: Dict[str, str] = {}
        # What is started may have to be fetched from object storage first, whatever that takes.
        patience: Dict[str, Any] = {"timeout": None} if method == "POST" else {}
        self.info = SandboxInfo.of(self._transport.call(
            method, self._path + what, members, seen=seen,
            headers={"If-Match": if_match} if if_match else None, **patience))
        self.etag = seen.get("etag")
        return self.info

    def refresh(self) -> SandboxInfo:
        """Ask again how it is."""
        return self._ask("GET", "")

    def update(self, *, if_match: Optional[str] = None, **changes: Any) -> SandboxInfo:
        """Change ``name``, ``metadata``, ``env``, ``timeout_s``, ``idle_timeout_s``, ``on_timeout``,
        ``on_idle``, ``freeze_after_s``, ``checkpoints``, ``network``, ``network_limits``, ``bindings``, ``preview``, ``wake``, ``restart``, ``cpus``, ``memory_mb``, ``pids``
        or ``disk_mb``; ``None`` takes a value away.
        ``if_match=sandbox.etag``: only if nobody changed it since (else ``Conflict``)."""
        return self._ask("PATCH", "", changes, if_match)

    def set_timeout(self, seconds: Optional[float]) -> SandboxInfo:
        """End of life that many seconds from now; ``None``: never."""
        return self.update(timeout_s=seconds)

    def set_network(self, network: Network, *, cut: bool = False) -> SandboxInfo:
        """What it may reach from now on: ``"none"``, ``"agents"``, ``"open"`` or
        ``{"rules": ["allow *.example.com 443"]}``. ``cut``: for connections that are open, too."""
        return self._ask("PATCH", "?cut=true" if cut else "", {"network": network})

    def set_bindings(self, bindings: Iterable[Binding]) -> SandboxInfo:
        """Which secrets its requests carry from now on, in place of those it had: for each the
        secret, the host and how, ``"openai@api.openai.com/v1/* as=bearer"`` or
        ``{"secret": "gh", "host": "github.com", "as": "git"}``. Values are never inside."""
        return self.update(bindings=list(bindings))

    def network_log(self, *, after: int = 0) -> List[NetworkEntry]:
        """The latest of what it reached and what it could not, oldest first; ``after`` is the
        ``number`` of the last one seen."""
        answer = self._transport.call("GET", self._path + "/network/log",
                                      query={"after": after or None})
        return [NetworkEntry.of(e) for e in answer["entries"]]

    def network_usage(self) -> Dict[str, Any]:
        """What its network carried since it was made: ``egress``, ``previews``, and by ``hosts``."""
        return dict(self._transport.call("GET", self._path + "/network/usage"))

    def blast(self) -> Dict[str, Any]:
        """What it can reach and has reached: hosts, secrets, ports, volumes, programs, files."""
        return dict(self._transport.call("GET", self._path + "/blast"))

    def changes(self, *, limit: Optional[int] = None) -> Dict[str, Any]:
        """Which files it changed since it was made from its image."""
        return dict(self._transport.call("GET", self._path + "/changes", query={"limit": limit}))

    # -- its ports from outside

    def ports(self) -> List[Port]:
        """What listens in it now, each with the address (``url``) that leads there."""
        return [Port.of(p) for p in
                Noun(self._transport)._pages(f"{self._path}/ports", "ports")]

    def preview_token(self, port: Optional[int] = None, *, expires_s: Optional[float] = None,
                      data: Optional[Mapping[str, Any]] = None) -> PreviewToken:
        """Let its bearer into one port, or all; ``data`` reaches the server inside with each request, as
        ``X-Verified-User-Data``. A browser opens its ``url``, a program sends ``X-Warren-Preview-Token``."""
        return PreviewToken.of(self._transport.call(
            "POST", self._path + "/previews/tokens",
            given(port=port, expires_s=expires_s, data=dict(data) if data is not None else None)))

    def preview_tokens(self) -> List[PreviewToken]:
        """Those that are good now."""
        return [PreviewToken.of(t) for t in
                Noun(self._transport)._pages(f"{self._path}/previews/tokens", "tokens")]

    def revoke_preview_token(self, id: str) -> None:
        """By its id; refused within a second."""
        self._transport.call("DELETE", f"{self._path}/previews/tokens/{quote(id)}")

    # -- stopping, sleeping, going back

    def stop(self, *, if_match: Optional[str] = None) -> SandboxInfo:
        """End its processes, keep its files."""
        return self._ask("POST", "/stop", None, if_match)

    def start(self, *, if_match: Optional[str] = None) -> SandboxInfo:
        """Run it again on the files that it has."""
        return self._ask("POST", "/start", None, if_match)

    def pause(self, *, if_match: Optional[str] = None) -> SandboxInfo:
        """Put its processes away on disk; it uses no memory until it is resumed, which whatever
        needs it does by itself. What cannot be put away is a ``Conflict`` (``cannot_dump``)."""
        return self._ask("POST", "/pause", None, if_match)

    def resume(self, *, memory: bool = True) -> SandboxInfo:
        """Go on with the processes it had; ``memory=False`` forgets them and starts anew."""
        return self._ask("POST", "/resume" if memory else "/resume?memory=false")

    def checkpoint(self, name: Optional[str] = None, *, comment: Optional[str] = None,
                   metadata: Optional[Mapping[str, str]] = None, memory: bool = False) -> Checkpoint:
        """Keep its files as they are now, with ``memory`` its processes too; it goes on."""
        return Checkpoint.of(self._transport.call(
            "POST", f"{self._path}/checkpoints",
            given(name=name, comment=comment, metadata=metadata, memory=memory or None), headers=once(),
            timeout=None))

    def checkpoints(self) -> List[Checkpoint]:
        """Its checkpoints, the oldest first."""
        return [Checkpoint.of(c) for c in
                Noun(self._transport)._pages(f"{self._path}/checkpoints", "checkpoints")]

    def restore(self, checkpoint: str, *, memory: bool = True) -> SandboxInfo:
        """Back to a checkpoint, by id or name; ``memory=False`` starts anew on its files."""
        return self._ask("POST", "/restore", {"checkpoint": checkpoint, "memory": memory})

    def fork(self, count: int = 1, *, memory: bool = False) -> List["Sandbox"]:
        """Copies of it, all running; with ``memory`` they go on with its processes."""
        made = self._transport.call("POST", f"{self._path}/fork", {"count": count, "memory": memory},
                                    headers=once(), timeout=None)
        return [Sandbox(self._transport, SandboxInfo.of(s)) for s in made["sandboxes"]]

    def archive(self) -> SandboxInfo:
        """Stop it and keep its files in the daemon's object storage alone; ``start`` brings them back. To see how
        far it is, read ``POST /v1/sandboxes/{id}/archive`` line by line."""
        with self._transport.lines("POST", self._path + "/archive", {}) as lines:
            for _ in lines:
                pass
        return self.refresh()

    def delete(self, *, if_match: Optional[str] = None) -> None:
        """End it, files and all. One that is gone already is fine."""
        try:
            self._transport.call("DELETE", self._path,
                                 headers={"If-Match": if_match} if if_match else None)
        except ApiError as e:
            if e.code not in ("sandbox_gone", "sandbox_not_found"):
                raise

    def keep_awake(self, seconds: float, reason: Optional[str] = None) -> Lease:
        """Until then it counts as at work: neither frozen nor ended for being idle."""
        return Lease.of(self._transport.call("POST", self._path + "/leases",
                                             given(seconds=seconds, reason=reason)))

    def leases(self) -> List[Lease]:
        """Those that keep it awake now."""
        answer = self._transport.call("GET", self._path + "/leases")
        return [Lease.of(e) for e in answer["leases"]]

    def end_lease(self, lease: str) -> None:
        """End a lease, by its id, before its time."""
        self._transport.call("DELETE", f"{self._path}/leases/{lease}")

    def promote(self, *, end: bool = False) -> "Sandbox":
        """Give its files to the sandbox that it was forked from, which is returned; ``end`` deletes
        this one afterwards."""
        answer = self._transport.call("POST", self._path + "/promote", {"end": end})
        return Sandbox(self._transport, SandboxInfo.of(answer["sandbox"]))

    def usage(self) -> SandboxUsage:
        """What it uses at this moment."""
        return SandboxUsage.of(self._transport.call("GET", self._path + "/usage"))

    def commit(self, name: str, **config: Any) -> Image:
        """Make an image of its files as they are now; ``config``: ``cmd``, ``entrypoint``, ``env``,
        ``labels``, ``workdir``, ``user``."""
        return Image.of(self._transport.call("POST", self._path + "/commit",
                                             {"name": name, **config}, timeout=None))

    def logs(self, *, follow: bool = False, since: Optional[str] = None) -> Lines:
        """Output of everything that was started through the API, and its life's events."""
        return self._transport.lines("GET", self._path + "/logs",
                                     query={"follow": follow or None, "since": since})

    # -- commands

    def run(self, command: Command, *, cwd: Optional[str] = None,
            env: Optional[Mapping[str, str]] = None, user: Optional[str] = None,
            timeout: Optional[float] = None, stdin: Union[str, None] = None,
            label: Optional[str] = None, output_limit: Optional[int] = None, check: bool = False,
            on_stdout: Optional[Callable[[str], Any]] = None,
            on_stderr: Optional[Callable[[str], Any]] = None) -> Result:
        """Run a command and wait for its end. Text goes to the shell, a list is a program and its
        arguments. ``timeout`` kills it and all that it started (``result.reason`` is then
        ``timeout``). ``check`` raises ``CommandError`` unless it ends well. The callbacks get output
        as it comes."""
        spec = {**spec_of(command, cwd, env, user, timeout, label), **given(stdin=stdin)}
        if on_stdout or on_stderr:
            result = collect(self._stream(spec), on_stdout, on_stderr, output_limit)
        else:
            spec.update(given(output_limit=output_limit))
            patience = None if timeout is None else timeout + 60
            result = Result.of(self._transport.call("POST", self._path + "/exec", spec,
                                                    timeout=patience))
        if check and not result.ok:
            raise CommandError(result)
        return result

    def stream(self, command: Command, *, cwd: Optional[str] = None,
               env: Optional[Mapping[str, str]] = None, user: Optional[str] = None,
               timeout: Optional[float] = None, stdin: Optional[str] = None,
               label: Optional[str] = None) -> Events:
        """Run a command and iterate over its events: ``start``, ``stdout``, ``stderr``, ``exit``."""
        return self._stream({**spec_of(command, cwd, env, user, timeout, label),
                             **given(stdin=stdin)})

    def _stream(self, spec: Dict[str, Any]) -> Events:
        lines = self._transport.lines("POST", self._path + "/exec", spec)
        return Events(self._transport, self._path + "/processes", lines)

    def spawn(self, command: Command, **more: Any) -> Process:
        """Start a command and leave it to itself: ``sandbox.processes.start``."""
        return self.processes.start(command, **more)


def _mount(path: str, volume: str) -> Dict[str, Any]:
    name, _, how = volume.partition(":")
    if how not in ("", "ro"):
        raise ValueError(f"a volume is NAME or NAME:ro, not {volume!r}")
    return {"volume": name, "path": path, "read_only": how == "ro"}


class Sandboxes:
    """``client.sandboxes``."""

    def __init__(self, transport: Transport):
        self._transport = transport

    def create(self, image: Optional[str] = None, *, template: Optional[str] = None,
               name: Optional[str] = None, cpus: Optional[float] = None,
               memory_mb: Optional[int] = None, disk_mb: Optional[int] = None,
               pids: Optional[int] = None, nofile: Optional[int] = None,
               env: Optional[Mapping[str, str]] = None,
               metadata: Optional[Mapping[str, str]] = None, user: Optional[str] = None,
               workdir: Optional[str] = None, timeout_s: Optional[float] = None,
               on_timeout: Optional[str] = None, idle_timeout_s: Optional[float] = None,
               on_idle: Optional[str] = None, freeze_after_s: Optional[float] = None,
               checkpoints: Optional[Mapping[str, Any]] = None, network: Optional[Network] = None,
               network_limits: Optional[Mapping[str, int]] = None,
               bindings: Optional[Iterable[Binding]] = None,
               volumes: Optional[Mapping[str, str]] = None, preview: Optional[str] = None,
               wake: Optional[str] = None, restart: Optional[str] = None,
               idempotency_key: Optional[str] = None) -> Sandbox:
        """Make a sandbox, running when this returns. ``network``: what it may reach (see
        ``Sandbox.set_network``), nothing unless given; ``network_limits``: how much of it, ``{"connections": 200,
        "rate_mbps": 100}``. ``bindings``: secrets that its requests
        carry (see ``Sandbox.set_bindings``). ``freeze_after_s``: of idleness, until its work
        stands still. ``checkpoints``: those it takes by itself, ``{"every_s": 600, "on_stop": True,
        "keep": {"last": 10}}``. ``volumes``: where it sees which, by path,
        ``{"/data": "models", "/ref": "shared:ro"}``. Safe to repeat: a retry after a broken
        connection does not make a second one."""
        spec = given(image=image, template=template, name=name, cpus=cpus, memory_mb=memory_mb,
                     disk_mb=disk_mb, pids=pids, nofile=nofile, env=dict(env) if env else None,
                     metadata=dict(metadata) if metadata else None, user=user, workdir=workdir,
                     timeout_s=timeout_s, on_timeout=on_timeout, idle_timeout_s=idle_timeout_s,
                     on_idle=on_idle, freeze_after_s=freeze_after_s,
                     checkpoints=dict(checkpoints) if checkpoints else None, network=network, preview=preview, wake=wake, restart=restart,
                     network_limits=dict(network_limits) if network_limits else None,
                     bindings=list(bindings) if bindings is not None else None,
                     volumes=[_mount(*v) for v in volumes.items()] if volumes else None)
        info = self._transport.call(
            "POST", "/v1/sandboxes", spec, timeout=None if template else ...,
            headers={"Idempotency-Key": idempotency_key or uuid.uuid4().hex})
        return Sandbox(self._transport, SandboxInfo.of(info))

    def get(self, who: str) -> Sandbox:
        """One, by its id or name."""
        return Sandbox(self._transport, SandboxInfo.of(
            self._transport.call("GET", f"/v1/sandboxes/{quote(who)}")))

    def iter(self, *, state: Union[str, List[str], None] = None, name: Optional[str] = None,
             metadata: Optional[Mapping[str, str]] = None, order: Optional[str] = None,
             page: int = 100) -> Iterator[Sandbox]:
        """All that match, newest first, a page at a time."""
        states = ",".join(state) if isinstance(state, list) else state
        query = {"state": states, "name": name, "order": order, "limit": page,
                 **{f"metadata.{k}": v for k, v in (metadata or {}).items()}}
        cursor = None
        while True:
            answer = self._transport.call("GET", "/v1/sandboxes",
                                          query={**query, "cursor": cursor})
            for one in answer["sandboxes"]:
                yield Sandbox(self._transport, SandboxInfo.of(one))
            cursor = answer.get("next_cursor")
            if not cursor:
                return

    def list(self, **query: Any) -> List[Sandbox]:
        """The same as a list."""
        return list(self.iter(**query))

    def delete(self, who: str) -> None:
        """End one, files and all, by its id or name."""
        self._transport.call("DELETE", f"/v1/sandboxes/{quote(who)}")
