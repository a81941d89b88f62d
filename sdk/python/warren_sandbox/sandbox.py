"""A sandbox: a computer to run commands in."""
from __future__ import annotations

import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union

from ._http import Lines, Transport, given, quote
from .errors import ApiError, CommandError
from .files import Files
from .models import Image, Result, SandboxInfo, SandboxUsage
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
        self.info = SandboxInfo.of(self._transport.call(
            method, self._path + what, members, seen=seen,
            headers={"If-Match": if_match} if if_match else None))
        self.etag = seen.get("etag")
        return self.info

    def refresh(self) -> SandboxInfo:
        """Ask again how it is."""
        return self._ask("GET", "")

    def update(self, *, if_match: Optional[str] = None, **changes: Any) -> SandboxInfo:
        """Change ``name``, ``metadata``, ``env``, ``timeout_s``, ``idle_timeout_s``, ``on_timeout``,
        ``on_idle``, ``cpus``, ``memory_mb``, ``pids`` or ``disk_mb``; ``None`` takes a value away.
        ``if_match=sandbox.etag``: only if nobody changed it since (else ``Conflict``)."""
        return self._ask("PATCH", "", changes, if_match)

    def set_timeout(self, seconds: Optional[float]) -> SandboxInfo:
        """End of life that many seconds from now; ``None``: never."""
        return self.update(timeout_s=seconds)

    def stop(self, *, if_match: Optional[str] = None) -> SandboxInfo:
        """End its processes, keep its files."""
        return self._ask("POST", "/stop", None, if_match)

    def start(self, *, if_match: Optional[str] = None) -> SandboxInfo:
        """Run it again on the files that it has."""
        return self._ask("POST", "/start", None, if_match)

    def delete(self, *, if_match: Optional[str] = None) -> None:
        """End it, files and all. One that is gone already is fine."""
        try:
            self._transport.call("DELETE", self._path,
                                 headers={"If-Match": if_match} if if_match else None)
        except ApiError as e:
            if e.code not in ("sandbox_gone", "sandbox_not_found"):
                raise

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
               on_idle: Optional[str] = None, idempotency_key: Optional[str] = None) -> Sandbox:
        """Make a sandbox, running when this returns. Safe to repeat: a retry after a broken
        connection does not make a second one."""
        spec = given(image=image, template=template, name=name, cpus=cpus, memory_mb=memory_mb,
                     disk_mb=disk_mb, pids=pids, nofile=nofile, env=dict(env) if env else None,
                     metadata=dict(metadata) if metadata else None, user=user, workdir=workdir,
                     timeout_s=timeout_s, on_timeout=on_timeout, idle_timeout_s=idle_timeout_s,
                     on_idle=on_idle)
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
