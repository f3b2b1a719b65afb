"""Clients that mean no harm: each asks at a pace of its own, waits for the answer, and says how long that took."""

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
    """What one of them saw."""

    took_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Lost connections, refusals, calls without an answer: one line each."""

    def ms(self, quantile: float) -> float:
        """Of what was answered."""
        if len(self.took_s) < 2:
            return float("nan")
        return 1000 * statistics.quantiles(self.took_s, n=1000, method="inclusive")[round(quantile * 1000) - 1]


class Innocent(ABC, threading.Thread):
    """A thread from `start` to `leave`."""

    name_of = ""
    pause_s = 0.0

    def __init__(self, doors: Doors) -> None:
        super().__init__(daemon=True)
        self.doors = doors
        self.noticed = Noticed()
        self._left = threading.Event()

    @abstractmethod
    def ask(self) -> None:
        """One question; raises when it is not answered as it should."""

    def forget(self) -> None:
        """After a failure: begin anew."""

    def leave(self) -> Noticed:
        """End; what it saw."""
        self._left.set()
        self.join()
        self.forget()
        return self.noticed

    def run(self) -> None:
        """Until it leaves."""
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
    """Logged in on one connection."""

    peer: Peer | None = None

    def known(self) -> Peer:
        """The connection, made anew if need be."""
        if self.peer is None:
            peer = Peer(("127.0.0.1", self.doors.data))
            peer.sock.settimeout(CALL_S)
            peer.sock.sendall(auth(2, "token", TOKEN))
            receive(peer)
            self.peer = peer
        return self.peer

    def forget(self) -> None:
        """Hang up."""
        if self.peer is not None:
            self.peer.close()
            self.peer = None


class Reader(User):
    """One read at a time."""

    name_of, pause_s = "reads", 0.001
    at = 0

    def ask(self) -> None:
        """The next entry."""
        self.at += 1
        _served(self.known().ask(read(LEDGER, self.at % ENTRIES)).code)


class Writer(User):
    """One add at a time."""

    name_of, pause_s = "adds", 0.002
    at = 0

    def ask(self) -> None:
        """The next entry of a ledger of its own."""
        self.at += 1
        _served(self.known().ask(add(1000 + id(self) % 100_000, self.at, bytes(1000))).code)


class Newcomer(User):
    """Connects, logs in, reads one entry, and goes."""

    name_of, pause_s = "logins", 0.05

    def ask(self) -> None:
        """All of it."""
        _served(self.known().ask(read(LEDGER, 0)).code)
        self.forget()


class Probe(Innocent):
    """An orchestrator that would restart the bookie."""

    name_of, pause_s = "probes", 0.1

    def ask(self) -> None:
        """`/livez`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.doors.http, timeout=CALL_S)
        try:
            connection.request("GET", "/livez")
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != 200:
            raise RuntimeError(f"/livez answered {status}")


class Operator(Innocent):
    """Asks the admin port."""

    name_of, pause_s = "gRPC", 0.1
    channel: grpc.Channel | None = None

    def ask(self) -> None:
        """Whether it is well, on a connection that stays."""
        if self.channel is None:
            self.channel = grpc.insecure_channel(f"127.0.0.1:{self.doors.grpc}")
        health_pb2_grpc.HealthStub(self.channel).Check(health_pb2.HealthCheckRequest(), timeout=CALL_S)

    def forget(self) -> None:
        """Hang up."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None


def innocents(doors: Doors) -> list[Innocent]:
    """One of each."""
    return [kind(doors) for kind in (Reader, Writer, Newcomer, Probe, Operator)]


def _served(code: int) -> None:
    if code:
        raise RuntimeError(f"answered with code {code}")
