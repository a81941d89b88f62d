"""Says which public name of E2B's Python packages no test has: methods and their options."""
import inspect
import pathlib
import re
import sys

import e2b
import e2b_code_interpreter
import e2b_desktop
from e2b.sandbox_async.commands.command import Commands as AsyncCommands
from e2b.sandbox_async.commands.pty import Pty as AsyncPty
from e2b.sandbox_async.filesystem.filesystem import Filesystem as AsyncFilesystem
from e2b.sandbox_sync.commands.command import Commands
from e2b.sandbox_sync.commands.pty import Pty
from e2b.sandbox_sync.filesystem.filesystem import Filesystem
from e2b.template.main import TemplateBuilder

CLASSES = (e2b.Sandbox, e2b.AsyncSandbox, Commands, AsyncCommands, Pty, AsyncPty, Filesystem, AsyncFilesystem,
           e2b.CommandHandle, e2b.AsyncCommandHandle, e2b.WatchHandle, e2b.AsyncWatchHandle, e2b.AsyncCommandInputHandle,
           e2b.SandboxPaginator, e2b.Template, TemplateBuilder, e2b.Volume, e2b.Secret, e2b_code_interpreter.Sandbox,
           e2b_code_interpreter.AsyncSandbox, e2b_code_interpreter.Result, e2b_desktop.Sandbox)
# Of the old form, of how the client is put together, and of servers that are E2B's alone.
OTHERS = {"alias", "keep_memory", "logger", "secure", "beta_pause", "connection_config", "default_template",
          "default_mcp_template", "default_sandbox_timeout", "envd_api_url", "envd_direct_url", "mcp_port", "add_mcp_server",
          "beta_dev_container_prebuild", "beta_set_dev_container_start", "allow_network_mounts", "stream_idle_timeout"}


def names(cls):
    for name, value in inspect.getmembers(cls):
        if not name.startswith("_"):
            yield name
            if inspect.isfunction(value) or inspect.ismethod(value):
                yield from (p.name for p in inspect.signature(value).parameters.values() if p.default is not p.empty)


def main():
    tests = pathlib.Path(__file__).parent
    text = "\n".join(p.read_text() for p in sorted(tests.glob("*.py")) if p.name != "surface.py")
    missing = {f"{cls.__module__} {cls.__name__}: {name}" for cls in CLASSES for name in names(cls)
               if name not in OTHERS and not re.search(rf"\b{name}\b", text)}
    sys.exit("no test names these:\n" + "\n".join(sorted(missing)) if missing else 0)


main()
