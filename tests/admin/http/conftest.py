"""An HTTP port as a program sees it, of a bookie or of a plane in this process; and a cluster with some ledgers."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from bookie.client import BookKeeper
from tests.fixtures.bookies import BookieProcess


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as JSON; its content type must be JSON."""
        assert self.headers["content-type"].startswith("application/json"), self
        return json.loads(self.body)


class Port:
    """A client of one HTTP port. `token`, if any, is sent with each request."""

    def __init__(self, address: str, token: str = "") -> None:
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))
        self.token = token

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send one request on a new connection; `body` is sent as JSON unless it is bytes."""
        connection = http.client.HTTPConnection(*self.address, timeout=30)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent["authorization"] = f"Bearer {self.token}"
        try:
            connection.request(method, path, data, sent)
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """Send a GET request."""
        return self.ask("GET", path)

    def put(self, path: str, body: object = None) -> Answer:
        """Send a PUT request."""
        return self.ask("PUT", path, body)


@dataclass(frozen=True)
class Cluster:
    """Bookies with HTTP ports."""

    bookies: list[BookieProcess]

    @property
    def uri(self) -> str:
        """The metadata service URI."""
        return f"grpc://{self.bookies[0].admin}"

    @property
    def port(self) -> Port:
        """The HTTP port of the first bookie."""
        return Port(self.bookies[0].planes["http"])

    def write(self, count: int, size: int = 3, **custom: bytes) -> int:
        """Write a closed ledger with entries `entry 0`, `entry 1`...; return its id."""
        with (
            BookKeeper(self.uri) as bk,
            bk.create_ledger(
                ensemble_size=size, write_quorum_size=size, ack_quorum_size=size, password=b"", custom_metadata=custom
            ) as ledger,
        ):
            for number in range(count):
                ledger.append(f"entry {number}".encode())
        return int(ledger.id)


@pytest.fixture
def cluster_of(bookies: Callable[..., list[BookieProcess]]) -> Callable[..., Cluster]:
    """A factory of clusters: `cluster_of(3, key=value)`."""

    def start(count: int = 1, **settings: str) -> Cluster:
        return Cluster(bookies(count, httpServerEnabled="true", httpServerPort="0", **settings))

    return start
