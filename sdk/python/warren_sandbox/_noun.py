"""What the parts of a client have in common."""
from __future__ import annotations

import uuid
from typing import Any, Dict, Iterator, Mapping, Optional

from ._http import Transport


class Noun:
    def __init__(self, transport: Transport):
        self._transport = transport

    def _pages(self, path: str, member: str, query: Optional[Mapping[str, Any]] = None
               ) -> Iterator[Dict[str, Any]]:
        cursor = None
        while True:
            answer = self._transport.call("GET", path, query={**(query or {}), "cursor": cursor})
            yield from answer[member]
            cursor = answer.get("next_cursor")
            if not cursor:
                return


def once() -> Dict[str, str]:
    """A retry does not make a second one."""
    return {"Idempotency-Key": uuid.uuid4().hex}
