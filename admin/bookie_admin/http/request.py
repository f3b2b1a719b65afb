"""A request as endpoints see it, and their replies.

An endpoint is a plain function `(HttpRequest) -> Reply`, which may block. It runs on `RequestThreads`; the event loop
waits for it at most until the deadline. To refuse a request, an endpoint raises `Refused` or a BookKeeperError.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bookie.server.control import Control
from bookie_admin.access import Caller
from bookie_admin.http.moving import Movers

__all__ = [
    "Endpoint",
    "HttpRequest",
    "Parameters",
    "Refused",
    "Reply",
    "reply_json",
    "reply_text",
    "SERVING",
    "TEXT",
    "told",
]

TEXT = "text/plain; charset=utf-8"
JSON = "application/json; charset=utf-8"
SERVING = ("writable", "read-only")
"""The states in which a bookie is registered and serves requests."""


class Refused(Exception):
    """The request is refused, with an HTTP status and one line of text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Parameters(NamedTuple):
    """The parameters of a request, from which `bookie_admin.roles` determines the role that it needs."""

    params: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the HTTP port. `params` are those of the query; the last one of a name counts.

    Attributes:
        control: the bookie.
        movers: the decommissions of this process.
        method: the HTTP method.
        params: the parameters of the query.
        body: the body.
        accept: the header `accept`.
        caller: who makes the request.
        access_guarded: whether the configuration names tokens or certificates.
        timeout_s: the time in which the request must be answered, in seconds.
    """

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
        """Return an integer parameter of the query.

        Args:
            name: its name.
            default: its value if it is missing; None: it is required.
            low: its lowest value.
            high: its highest value.

        Raises:
            Refused: it is missing, not an integer, or out of range.
        """
        text = self.params.get(name)
        if text is None:
            if default is None:
                raise Refused(404, f"No {name} found. Should provide {name}=<number>")
            return default
        try:
            value = int(text)
        except ValueError:
            raise Refused(400, f"{name}={text[:40]!r} is not an integer; send an integer") from None
        if not low <= value <= high:
            raise Refused(400, f"{name}={value} is out of range; send an integer from {low} to {high}")
        return value

    def wants(self, name: str) -> bool:
        """Return a switch of the query, which is on if its value is `true`."""
        return self.params.get(name) == "true"

    def document(self, *, empty_status: int = 404, empty: str = "Request body not found.") -> dict[str, Any]:
        """Return the JSON object in the body.

        Raises:
            Refused: the body is empty or not a JSON object.
        """
        if not self.body.strip():
            raise Refused(empty_status, empty)
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            raise Refused(400, 'the body is not valid JSON; send an object such as {"name": value}') from None
        if not isinstance(found, dict):
            raise Refused(400, 'the body is not a JSON object; send one such as {"name": value}')
        return found


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: body, content type and status."""

    body: bytes
    content_type: str = TEXT
    status: int = 200


Endpoint = Callable[[HttpRequest], Reply]


def reply_text(text: str, status: int = 200) -> Reply:
    """Return a reply of plain text."""
    return Reply(text.encode(), TEXT, status)


def reply_json(value: Any, status: int = 200) -> Reply:
    """Return a reply of indented JSON, as Apache BookKeeper formats it."""
    return Reply(json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "replace"), JSON, status)


def told(control: Control) -> str:
    """Return the state of a bookie as a sentence, with what its start waits for."""
    return f"the bookie is {control.state}" + (f", and waits for {control.awaits}" if control.awaits else "")
