"""Runs the table of answers (tests/interop/statuses.py) against Apache BookKeeper's bookie and against ours."""

from collections.abc import Callable

import pytest

from bookie.pb import wire_pb2 as pb
from tests.interop.conftest import Standing
from tests.interop.raw import Wire
from tests.interop.statuses import (
    EOK,
    Bookie,
    Case,
    Odd,
    adds_v3,
    list_entries,
    others_v3,
    read,
    read_only,
    reads_v3,
    requests_v2,
    wrong,
)

pytestmark = pytest.mark.interop


Cases = Callable[[], list[Case | Odd]]


@pytest.mark.parametrize("kind", ["java", "ours"])
@pytest.mark.parametrize("cases", [adds_v3, reads_v3, others_v3, requests_v2])
def test_writable(
    standing: Standing, shared_cluster_uri: str, kind: str, cases: Callable[[], list[Case | Odd]]
) -> None:
    """Each operation under each condition that one request can meet gets the status of the table."""
    assert wrong(Bookie(standing(kind, shared_cluster_uri).port), kind, cases()) == []


@pytest.mark.parametrize("kind", ["java", "ours"])
def test_read_only(standing: Standing, shared_cluster_uri: str, kind: str) -> None:
    """A read-only bookie refuses plain adds, takes those of high priority, and reads and fences as ever."""
    bookie = standing(kind, shared_cluster_uri, forceReadOnlyBookie="true")
    assert wrong(Bookie(bookie.port), kind, read_only()) == []


@pytest.mark.parametrize("kind", ["java", "ours"])
def test_lists_of_entries(standing: Standing, shared_cluster_uri: str, kind: str) -> None:
    """Ours answers with the list. Upstream's storage throws, so that there is no answer, and the connection goes on."""
    bookie = Bookie(standing(kind, shared_cluster_uri).port)
    ledger = bookie.filled()
    if kind == "ours":
        assert bookie.ask(list_entries(ledger)) == EOK
        return
    with Wire(bookie.port) as wire:
        wire.send(pb.GET_LIST_OF_ENTRIES_OF_LEDGER, getListOfEntriesOfLedgerRequest=list_entries(ledger))
        assert wire.ask(pb.READ_ENTRY, readRequest=read(ledger)).status == EOK
