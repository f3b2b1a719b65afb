"""Ledgers that are deleted, and whose ids are used again, while they are copied."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bookie.client.replication.copier import Copier
from bookie.client.replication.recovering import copy_lost
from bookie.errors import NoSuchLedgerMetadata
from tests.client.replication.conftest import GHOST, Cluster

pytestmark = [
    pytest.mark.leaks("gRPC keeps threads of its own for the life of the process"),
    pytest.mark.thorough,
]


def test_a_ledger_whose_id_is_used_again_during_the_copy(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """L11: the metadata of the new ledger stay as they are, although their version is that of the old ones."""
    one, two, *_ = cluster.ids
    ledgers = cluster.driver.ledgers
    copy: Any = Copier._copy

    async def meanwhile(*given: Any) -> None:
        await copy(*given)
        stored = ledgers.read(ledger)
        ledgers.delete(ledger)
        await asyncio.sleep(0.01)
        again = ledgers.create(ledger, replace(stored.value, custom={"new": b"1"}, token=0))
        assert again.version == stored.version

    async def scenario() -> None:
        async with cluster.environment() as environment:
            with pytest.raises(NoSuchLedgerMetadata, match=f"ledger {ledger} was deleted, and another one"):
                await copy_lost(environment, Copier(environment), ledger, frozenset([GHOST]), fence=False)

    ledger = asyncio.run(cluster.write([(0, (one, GHOST, two))], 5))
    monkeypatch.setattr(Copier, "_copy", meanwhile)
    asyncio.run(scenario())
    assert ledgers.read(ledger).value.custom == {"new": b"1"}
    assert cluster.bookies_of(ledger) == [(one, GHOST, two)]
