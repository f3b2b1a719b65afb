"""The metadata store of a cluster's world: the embedded store and its service, and the driver's calls to them.

Only gRPC is simulated: `RemoteStore`, `MetadataService` and `EmbeddedStore` are the product's own, with their threads,
sessions and repeated calls. Calls may be slow, may fail before they were executed, or after (the answer is lost).
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import grpc

from bookie.metadata.key_value import remote
from bookie.metadata.key_value.driver import KeyValueDriver
from bookie.metadata.key_value.embedded import EmbeddedStore
from bookie.metadata.key_value.keys import NO_SESSION, Item
from bookie.metadata.key_value.remote import RemoteStore
from bookie.metadata.records.ledger_codec import parse_ledger
from bookie_admin.services.metadata_store import MetadataService
from tests.sim.events import Event

__all__ = ["Connection", "Store"]

LEDGERS = "ledgers/"
MAP_BYTES = 64 << 20
LOOK_S = 0.1


class Store(EmbeddedStore):
    """The store of a world. Every change of a ledger's metadata goes into the history, in the order of the store."""

    def __init__(self, directory: Path, history: list[Event], rng: Random) -> None:
        super().__init__(directory, map_bytes=MAP_BYTES)
        self.history = history
        self.service = MetadataService(self, streams_max=1000)
        self.connections: dict[str, Connection] = {}
        self.caller = threading.local()
        self._order = threading.Lock()
        # The process is thrown away after the world, so nothing is put back.
        for module, name, ours in (
            (secrets, "randbelow", rng.randrange),  # numbers of sessions, and tokens of metadata
            (remote, "open_channel", lambda target, *_: self.connections[target]),
            (remote, "MetadataStoreStub", lambda connection: connection),
        ):
            setattr(module, name, ours)

    def put(self, key: str, value: bytes, expected: int | None, session: int = NO_SESSION) -> Item:
        with self._order:
            item = super().put(key, value, expected, session)
            if key.startswith(LEDGERS):
                ledger = int(key.removeprefix(LEDGERS))
                metadata = parse_ledger(ledger, value)
                who = self.caller.name
                at = time.monotonic()
                self.history.append(Event(at, who, "stored", ledger, value=metadata, number=item.version))
        return item

    def connect(self, who: str, rng: Random, base_s: float) -> "Connection":
        """Create what leads from a client to this store."""
        self.connections[who] = Connection(self, who, rng, base_s)
        return self.connections[who]


class Trouble(grpc.RpcError):  # type: ignore[misc]
    """An answer of gRPC that is an error."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code = code
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[str, ...]:
        return ()


class _Context:
    """The server's side of a call."""

    def __init__(self) -> None:
        self.active = True

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise Trouble(code, details)

    def peer(self) -> str:
        return "ipv4:127.0.0.1:50000"

    def is_active(self) -> bool:
        return self.active


class Connection:
    """A client's channel to the store, and its stub. The rates are probabilities for each call."""

    def __init__(self, store: Store, who: str, rng: Random, base_s: float) -> None:
        self.store = store
        self.who = who
        self.base_s = base_s
        self.alive = True
        self.away = False
        self.stall_rate = self.fail_rate = self.lost_answer_rate = 0.0
        self.stall_s = 1.0
        self._rng = rng
        self._unset = threading.Event()

    def driver(self, session_timeout_s: float) -> KeyValueDriver:
        """Return a driver that uses this connection."""
        return KeyValueDriver(
            RemoteStore(self.who, session_timeout_s=session_timeout_s), session_timeout_s=session_timeout_s
        )

    def crash(self) -> None:
        """End the client's process: what arrived stays, and no answer comes back."""
        self.alive = False

    def back(self) -> None:
        """Let calls arrive again."""
        self.away = False

    def close(self) -> None:
        """Do nothing: there is no socket."""

    def Watch(self, request: Any, *, wait_for_ready: bool) -> "_Stream":  # noqa: N802 - the name of the service
        assert wait_for_ready
        return _Stream(self, request)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in {"Get", "Put", "Delete", "List", "Increment", "OpenSession", "KeepAlive", "CloseSession"}:
            raise AttributeError(method)
        return lambda request, timeout: self._call(method, request, timeout)

    def delay(self) -> float:
        """Return how long one way takes, in seconds."""
        return self.base_s * (1 + self._rng.random())

    def wait(self, seconds: float) -> None:
        """Let time pass; for ever if the client has crashed."""
        self._unset.wait(seconds)
        if not self.alive:
            self._unset.wait()

    def _call(self, method: str, request: Any, timeout: float) -> Any:
        chance = self._rng.random
        there = self.delay() + (self.stall_s * chance() if chance() < self.stall_rate else 0.0)
        if self.away or chance() < self.fail_rate:
            self.wait(min(there, timeout))
            raise Trouble(grpc.StatusCode.UNAVAILABLE, "planned: it does not arrive")
        if there >= timeout:
            threading.Timer(there, self._execute, (method, request)).start()
            self.wait(timeout)
            raise Trouble(grpc.StatusCode.DEADLINE_EXCEEDED, "planned: it arrives too late")
        lost = chance() < self.lost_answer_rate
        self.wait(there)
        reply = self._execute(method, request)
        self.wait(self.delay())
        if lost or self.away:
            raise Trouble(grpc.StatusCode.UNAVAILABLE, "planned: the answer is lost")
        if isinstance(reply, Trouble):
            raise reply
        return reply

    def _execute(self, method: str, request: Any) -> Any:
        """Let the service answer, on this thread. A refusal is returned."""
        self.store.caller.name = self.who
        try:
            return getattr(self.store.service, method)(request, _Context())
        except Trouble as refusal:
            return refusal


class _Stream:
    """A stream of changes. It breaks when a change cannot be delivered, and the driver opens another one."""

    def __init__(self, connection: Connection, request: Any) -> None:
        self._connection = connection
        self._request = request
        self._context = _Context()

    def cancel(self) -> None:
        self._context.active = False

    def __iter__(self) -> Iterator[Any]:
        connection = self._connection
        while connection.away and self._context.active:
            connection.wait(LOOK_S)
        for change in connection.store.service.Watch(self._request, self._context):
            connection.wait(connection.delay())
            if connection.away:
                raise Trouble(grpc.StatusCode.UNAVAILABLE, "planned: the stream has broken")
            yield change
