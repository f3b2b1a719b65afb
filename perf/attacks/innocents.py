"""Honest clients: each sends requests at its own pace, waits for the response, and records how long that took."""

import http.client
import statistics
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from perf.attacks.catalogue import ENTRIES, LEDGER, TOKEN
from tests.hostile.auth_frames import auth, receive
from tests.hostile.peer import Peer, add, read

__all__ = ["Doors", "innocents", "Noticed"]

CALL_S = 10.0


@dataclass(frozen=True, slots=True)
class Doors:
    """The ports of a bookie on 127.0.0.1."""

    data: int
    http: int
    grpc: int


@dataclass(slots=True)
class Noticed:
    """The response times that one client observed, and its failures."""

    took_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Lost connections, refusals and calls without a response, one line each."""

    def ms(self, quantile: float) -> float:
        """Return a quantile of the response times in ms."""
        if len(self.took_s) < 2:
            return float("nan")
        return 1000 * statistics.quantiles(self.took_s, n=1000, method="inclusive")[round(quantile * 1000) - 1]


class Innocent(ABC, threading.Thread):
    """A client in a thread of its own, from `start` to `leave`."""

    name_of = ""
    pause_s = 0.0

    def __init__(self, doors: Doors) -> None:
        super().__init__(daemon=True)
        self.doors = doors
        self.noticed = Noticed()
        self._left = threading.Event()

    @abstractmethod
    def ask(self) -> None:
        """Send one request; raise an error if it is not answered as expected."""

    def forget(self) -> None:
        """Start over after a failure."""

    def leave(self) -> Noticed:
        """Stop; return what the client observed."""
        self._left.set()
        self.join()
        self.forget()
        return self.noticed

    def run(self) -> None:
        """Send requests until `leave`."""
        while not self._left.wait(self.pause_s):
            began = time.perf_counter()
            try:
                self.ask()
            except (OSError, EOFError, RuntimeError, grpc.RpcError, http.client.HTTPException) as error:
                self.noticed.failed.append(f"{type(error).__name__}: {error}")
                self.forget()
            else:
                self.noticed.took_s.append(time.perf_counter() - began)


class User(Innocent):
    """A client that is logged in on one connection."""

    peer: Peer | None = None

    def known(self) -> Peer:
        """Return the connection; open it if necessary."""
        if self.peer is None:
            peer = Peer(("127.0.0.1", self.doors.data))
            peer.sock.settimeout(CALL_S)
            peer.sock.sendall(auth(2, "token", TOKEN))
            receive(peer)
            self.peer = peer
        return self.peer

    def forget(self) -> None:
        """Close the connection."""
        if self.peer is not None:
            self.peer.close()
            self.peer = None


class Reader(User):
    """Reads one entry at a time."""

    name_of, pause_s = "reads", 0.001
    at = 0

    def ask(self) -> None:
        """Request the next entry."""
        self.at += 1
        _served(self.known().ask(read(LEDGER, self.at % ENTRIES)).code)


class Writer(User):
    """Adds one entry at a time."""

    name_of, pause_s = "adds", 0.002
    at = 0

    def ask(self) -> None:
        """Add the next entry of its own ledger."""
        self.at += 1
        _served(self.known().ask(add(1000 + id(self) % 100_000, self.at, bytes(1000))).code)


class Newcomer(User):
    """Connects, logs in, reads one entry, and goes."""

    name_of, pause_s = "logins", 0.05

    def ask(self) -> None:
        """Do all of that."""
        _served(self.known().ask(read(LEDGER, 0)).code)
        self.forget()


class Probe(Innocent):
    """An orchestrator's liveness probe."""

    name_of, pause_s = "probes", 0.1

    def ask(self) -> None:
        """Request `/livez`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.doors.http, timeout=CALL_S)
        try:
            connection.request("GET", "/livez")
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != 200:
            raise RuntimeError(f"/livez answered {status}")


class Operator(Innocent):
    """Queries the admin port."""

    name_of, pause_s = "gRPC", 0.1
    channel: grpc.Channel | None = None

    def ask(self) -> None:
        """Query the health service over a persistent connection."""
        if self.channel is None:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{self.doors.grpc}")
        health_pb2_grpc.HealthStub(self.channel).Check(health_pb2.HealthCheckRequest(), timeout=CALL_S)

    def forget(self) -> None:
        """Close the connection."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None


def innocents(doors: Doors) -> list[Innocent]:
    """Return one client of each kind."""
    return [kind(doors) for kind in (Reader, Writer, Newcomer, Probe, Operator)]


def _served(code: int) -> None:
    if code:
        raise RuntimeError(f"answered with code {code}")
