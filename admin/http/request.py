"""A request as endpoints see it, what they answer, and the bounded threads that they run in.

An endpoint is a plain function `(HttpRequest) -> Reply` that may block. It runs on `RequestThreads`; the event loop
waits for it no longer than the deadline. What is refused is raised: `Refused`, or any error of ours.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from admin.access import Caller
from admin.http.moving import Movers
from bookie.server.control import Control

__all__ = [
    "Endpoint",
    "HttpRequest",
    "Parameters",
    "Refused",
    "Reply",
    "reply_json",
    "reply_text",
    "RequestThreads",
    "SERVING",
    "TEXT",
]

TEXT = "text/plain; charset=utf-8"
JSON = "application/json; charset=utf-8"
SERVING = ("writable", "read-only")
"""States of a bookie that is registered and takes requests."""
WAITING_MAX = 64


class Refused(Exception):
    """The request cannot be answered as it is: a status and a line for people."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Parameters(NamedTuple):
    """What a request asks for, as `admin.roles` judges it."""

    params: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `params` are those of the query; the last one of a name counts."""

    control: Control
    movers: Movers
    method: str
    params: Mapping[str, str]
    body: bytes
    accept: str
    caller: Caller
    access_guarded: bool
    timeout_s: float

    def number(self, name: str, default: int | None = None, *, low: int = 0, high: int = 2**63 - 1) -> int:
        """A whole number out of the query. Refused."""
        text = self.params.get(name)
        if text is None:
            if default is None:
                raise Refused(404, f"No {name} found. Should provide {name}=<number>")
            return default
        try:
            value = int(text)
        except ValueError:
            raise Refused(400, f"{name}={text[:40]!r} is no number; send a whole number") from None
        if not low <= value <= high:
            raise Refused(400, f"{name}={value} is out of range; send a number from {low} to {high}")
        return value

    def wants(self, name: str) -> bool:
        """A switch out of the query, as upstream reads it."""
        return self.params.get(name) == "true"

    def document(self, *, empty_status: int = 404, empty: str = "Request body not found.") -> dict[str, Any]:
        """The JSON object in the body. Refused."""
        if not self.body.strip():
            raise Refused(empty_status, empty)
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            raise Refused(400, 'the body is no JSON; send an object, as {"name": value}') from None
        if not isinstance(found, dict):
            raise Refused(400, 'the body is no JSON object; send one, as {"name": value}')
        return found


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back."""

    body: bytes
    content_type: str = TEXT
    status: int = 200


Endpoint = Callable[[HttpRequest], Reply]


def reply_text(text: str, status: int = 200) -> Reply:
    """Plain text."""
    return Reply(text.encode(), TEXT, status)


def reply_json(value: Any, status: int = 200) -> Reply:
    """Pretty printed, as upstream does."""
    return Reply(json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace"), JSON, status)


class RequestThreads:
    """Threads for calls that block. More than `WAITING_MAX` callers in a queue are turned away."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="http")
        self._room = threads + WAITING_MAX
        self._inside = 0  # of the event loop

    async def run(self, endpoint: Endpoint, request: HttpRequest) -> Reply:
        """The endpoint's answer. Refused with 503 when too many wait, with 504 when it takes too long.

        A call that was given up still holds its thread until it returns, and is counted as long.
        """
        if self._inside >= self._room:
            raise Refused(503, "too many requests wait for an answer; try again in a moment")
        self._inside += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, endpoint, request)
        future.add_done_callback(self._left)
        try:
            return await asyncio.wait_for(asyncio.shield(future), request.timeout_s)
        except TimeoutError:
            raise Refused(504, f"no answer within {request.timeout_s:g} s (httpServerRequestTimeoutMs)") from None

    def close(self) -> None:
        """No further calls; those under way end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _left(self, future: "asyncio.Future[Reply]") -> None:
        self._inside -= 1
        if not future.cancelled():
            future.exception()  # it was told to the caller, or the caller has gone
