"""Ports are checked before anything is changed."""

import socket
from collections.abc import Iterator

import pytest

from bookie.server.configuration.errors import ConfigError
from bookie.server.process.ports import check_free


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_taken_ports_are_refused_even_shared_ones(taken: int) -> None:
    """A listener on the address, or on any address, prevents the start; SO_REUSEPORT does not hide it."""
    for host in ("127.0.0.1", ""):
        with pytest.raises(ConfigError, match=rf"bookiePort={taken}: .*another process"):
            check_free("bookiePort", host, taken)


def test_free_ports_pass_and_stay_free(taken: int) -> None:
    """The check does not occupy the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for _ in range(2):
        check_free("bookiePort", "127.0.0.1", port)
    check_free("bookiePort", "127.0.0.1", 0)
    check_free("adminPort", "127.0.0.1", -1)


def test_foreign_addresses_are_refused() -> None:
    """An address that this machine does not have is refused."""
    with pytest.raises(ConfigError, match="not an address of this machine"):
        check_free("adminPort", "192.0.2.1", 9)
