"""Warren's client for Python: isolated Linux computers for agents and untrusted code.

    from warren_sandbox import Client

    with Client().sandboxes.create() as box:
        print(box.run("echo hello").stdout)
"""
from .client import Client
from .errors import (ApiError, CommandError, Conflict, ConnectionFailed, Failed, Forbidden,
                     InvalidRequest, NoSpace, NotFound, ProtocolError, RateLimited, RequestTimeout,
                     SandboxGone, Unauthorized, Unavailable, WarrenError)
from .files import Files, PolledWatch, Watch
from .models import (Entry, Event, ExecEvent, FileEvent, FileUsage, Image, Key, Match, ProcessInfo,
                     ReplaceResult, Result, SandboxInfo, SandboxUsage, SearchResult, Team, Template,
                     Usage, WriteResult)
from .process import Events, Process, Processes
from .sandbox import Sandbox, Sandboxes

__version__ = "0.1.0"
__all__ = [
    "ApiError", "Client", "CommandError", "Conflict", "ConnectionFailed", "Entry", "Event",
    "Events", "ExecEvent", "Failed", "FileEvent", "FileUsage", "Files", "Forbidden", "Image",
    "InvalidRequest", "Key", "Match", "NoSpace", "NotFound", "PolledWatch", "Process",
    "ProcessInfo", "Processes", "ProtocolError", "RateLimited", "ReplaceResult", "RequestTimeout",
    "Result", "Sandbox", "SandboxGone", "SandboxInfo", "SandboxUsage", "Sandboxes", "SearchResult",
    "Team", "Template", "Unauthorized", "Unavailable", "Usage", "WarrenError", "Watch",
    "WriteResult",
]
