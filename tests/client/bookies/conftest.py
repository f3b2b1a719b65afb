"""A bookie to connect to, and scripted peers."""

from collections.abc import Iterator

import pytest

from tests.client.v3_peer import V3Peer
from tests.client.wire_peer import WirePeer


@pytest.fixture
def peer() -> Iterator[WirePeer]:
    """The bookie's end of a V2 connection, played by the test."""
    with WirePeer() as peer:
        yield peer


@pytest.fixture
def v3_peer() -> Iterator[V3Peer]:
    """The bookie's end of a V3 connection, played by the test."""
    with V3Peer() as peer:
        yield peer
