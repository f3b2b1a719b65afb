"""A scripted peer and a channel to it, for the tests of the client."""

from collections.abc import Iterator

import pytest

from bookie.client import Channel
from tests.client.wire_peer import WirePeer


@pytest.fixture
def peer() -> Iterator[WirePeer]:
    """The bookie's end of the connection, played by the test."""
    with WirePeer() as peer:
        yield peer


@pytest.fixture
def channel(peer: WirePeer) -> Iterator[Channel]:
    """A channel to the scripted peer."""
    with Channel.connect("127.0.0.1", peer.port) as channel:
        yield channel
