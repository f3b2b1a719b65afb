"""A thread follows a ledger while its only bookie is away, in real processes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.client.bookies.connect import Connector
from tests.client.facade.direct_adds import WAIT_S, on, wait_until
from tests.fixtures.bookies import BookieProcess, metadata_of


@pytest.mark.parametrize("v2", [pytest.param(True, marks=pytest.mark.thorough), False], ids=["V2", "V3"])
def test_followed_through_a_restart(
    bookies: Callable[..., list[BookieProcess]], monkeypatch: pytest.MonkeyPatch, *, v2: bool
) -> None:
    """Whoever follows a ledger gets every entry once, however often its bookie could not be reached meanwhile."""
    refused: list[int] = []
    real = Connector.connect

    async def counted(self: Connector, link: Any, host: str, port: int) -> None:
        await real(self, link, host, port)
        if link.broken is not None:
            refused.append(port)

    monkeypatch.setattr(Connector, "connect", counted)
    store, one = bookies(2)
    with BookKeeper(metadata_of([store]), useV2WireProtocol=v2, maxReadBytesInFlight=1 << 20) as bk:
        with on(bk, one) as ledger:
            for _ in range(60):
                ledger.append(bytes(100_000))
        with bk.open_ledger(ledger.id) as reader, ThreadPoolExecutor(1) as threads:
            following = reader.follow(max_count=3)
            seen = [entry.id for entry in next(following)]
            one.kill()
            rest = threads.submit(lambda: [entry.id for batch in following for entry in batch])
            wait_until(lambda: refused.count(one.port) >= 3)
            one.start()
            seen += rest.result(WAIT_S)
            assert seen == list(range(60))
