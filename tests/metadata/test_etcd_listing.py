"""Listings of ledgers in etcd: each is listed once and in order, in bounded pages, and etcd counts no key often."""

import uuid
from collections.abc import Iterable
from contextlib import closing
from random import Random
from typing import Any

import pytest

from bookie.metadata.etcd import numbered
from bookie.metadata.etcd.endpoints import Endpoints, EtcdAccess, SentCall
from bookie.metadata.records.replication import Mark
from bookie.pb import etcd_pb2 as pb
from tests.fixtures.etcd import EtcdCluster
from tests.metadata.conftest import EtcdScope

pytestmark = pytest.mark.leaks("gRPC keeps threads of its own for the life of the process")

PAGE = 50
AT_ONCE = 100
LEDGERS_MAX = (1 << 63) - 1
Answers = list[tuple[int, int]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """For each range that etcd has answered: how many keys it returned, and how many it counted. Pages are small."""
    seen: Answers = []
    call, response = Endpoints.call, SentCall.response

    def recorded(self: Endpoints, method: str, request: Any, timeout: float) -> Any:
        answer = call(self, method, request, timeout)
        if method == "KV/Range":
            seen.append((len(answer.kvs), answer.count))
        return answer

    def received(self: SentCall) -> Any:
        answer = response(self)
        seen.append((len(answer.kvs), answer.count))
        return answer

    monkeypatch.setattr(Endpoints, "call", recorded)
    monkeypatch.setattr(SentCall, "response", received)
    monkeypatch.setattr(numbered, "LISTED", PAGE)
    return seen


def put_all(etcd: EtcdCluster, keys: Iterable[str]) -> None:
    """Put keys with empty values."""
    left = list(keys)
    with closing(Endpoints((etcd.members[0].address,), EtcdAccess())) as members:
        for at in range(0, len(left), AT_ONCE):
            puts = [pb.RequestOp(request_put=pb.PutRequest(key=key.encode())) for key in left[at : at + AT_ONCE]]
            members.call("KV/Txn", pb.TxnRequest(success=puts), 10)


def ledger_keys(scope: EtcdScope, ledgers: Iterable[int]) -> list[str]:
    """Return the keys of ledgers."""
    return [f"{scope.scope}/ledgers/{uuid.UUID(int=ledger)}" for ledger in ledgers]


@pytest.mark.parametrize(
    "ledgers",
    [
        pytest.param(range(2000), id="dense"),
        pytest.param(range(0, 4000, 2), id="every second one deleted"),
        pytest.param([one for one in range(2200) if one * 7919 % 10], id="a tenth deleted"),
        pytest.param(range(2000, 4000), id="the older half deleted"),
        pytest.param(range(7, 2_000_000, 1000), id="sparse"),
        pytest.param([*range(500), *range(3 << 56, (3 << 56) + 1000), LEDGERS_MAX - 1, LEDGERS_MAX], id="far apart"),
    ],
)
def test_a_listing_counts_no_key_often(
    etcd: EtcdCluster, etcd_scope: EtcdScope, answers: Answers, ledgers: Iterable[int]
) -> None:
    """The pages have all ledgers in order, and what etcd counts for them grows with the ledgers, not their square."""
    expected = list(ledgers)
    driver = etcd_scope.connect()
    put_all(etcd, ledger_keys(etcd_scope, expected))
    answers.clear()
    pages = list(driver.ledgers.ranges())
    assert [ledger for page in pages for ledger in page] == expected
    assert max(returned for returned, _ in answers) <= PAGE
    assert sum(counted for _, counted in answers) <= 4 * len(expected)
    assert len(answers) <= 4 * len(expected) // PAGE + 40  # 40 lead from one ledger to another one far away


def test_a_page_of_other_keys_does_not_end_a_listing(
    etcd: EtcdCluster, etcd_scope: EtcdScope, answers: Answers
) -> None:
    """More keys than a page has that are no ledgers, between two ledgers and around all of them."""
    driver = etcd_scope.connect()
    strangers = [f"{etcd_scope.scope}/ledgers/00000000-0000-0000-0000-000000000007-{number}" for number in range(120)]
    strangers += [f"{etcd_scope.scope}/ledgers/!{number}" for number in range(120)]
    put_all(etcd, [*strangers, *ledger_keys(etcd_scope, [6, 7, 8, (1 << 64) | 3])])
    assert [ledger for page in driver.ledgers.ranges() for ledger in page] == [6, 7, 8]
    assert all(returned <= PAGE for returned, _ in answers)


def test_a_malformed_key_does_not_stand_in_for_a_ledger(
    etcd: EtcdCluster, etcd_scope: EtcdScope, answers: Answers
) -> None:
    """Among dense ledgers, some were deleted, and as many keys that are nearly those of ledgers are in their places."""
    driver = etcd_scope.connect()
    gone = range(10, 1000, PAGE)
    [*near] = ledger_keys(etcd_scope, gone)
    changes = (lambda key: key + "0", lambda key: key[:-1] + "g", lambda key: key[:-1] + "F", lambda key: key[:-1],
               lambda key: key[:-1] + "\n", lambda key: f"{key}\n{key}",
               lambda key: key + key, lambda key: key[:-2] + "_1")  # fmt: skip
    strangers = [changes[at % len(changes)](key) for at, key in enumerate(near)]
    expected = [ledger for ledger in range(1000) if ledger not in gone]
    put_all(etcd, [*strangers, *ledger_keys(etcd_scope, expected)])
    assert [ledger for page in driver.ledgers.ranges() for ledger in page] == expected
    assert max(returned for returned, _ in answers) <= PAGE


def test_a_listing_whose_early_requests_fail(
    etcd: EtcdCluster, etcd_scope: EtcdScope, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was sent before it was needed, and had no answer in time, is sent again."""
    begin = Endpoints.begin
    sent: list[str] = []

    def late(self: Endpoints, method: str, request: Any, timeout: float) -> SentCall:
        sent.append(method)
        return begin(self, method, request, timeout if len(sent) % 3 else 0.0)

    monkeypatch.setattr(Endpoints, "begin", late)
    driver = etcd_scope.connect()
    put_all(etcd, ledger_keys(etcd_scope, range(1000)))
    answers.clear()
    assert [ledger for page in driver.ledgers.ranges() for ledger in page] == list(range(1000))
    assert len(sent) >= 1000 // PAGE - 3
    assert sum(returned for returned, _ in answers) == 1000


def test_marks_and_locks_are_listed_without_counting_them_often(
    etcd: EtcdCluster, etcd_scope: EtcdScope, answers: Answers
) -> None:
    """A listing of many marks, and a claim among them, count no key often, as a listing of ledgers does not."""
    driver = etcd_scope.connect()
    marked = range(70_000, 70_600)
    driver.replication.mark(marked[7], ["a:1"], 5)
    marks = [f"{etcd_scope.scope}/underreplicated/{ledger:019d}" for ledger in marked]
    put_all(etcd, [*marks[:7], *marks[8:], f"{marks[9]}-", marks[9][:-1]])
    answers.clear()
    found = [mark for page in driver.replication.marks() for mark in page]
    assert found == [Mark(ledger, ("a:1",) if ledger == marked[7] else (), 5 if ledger == marked[7] else None)
                     for ledger in marked]  # fmt: skip
    assert sum(counted for _, counted in answers) <= 5 * len(marked)
    assert len(answers) <= 3 * len(marked) // PAGE + 40
    answers.clear()
    claim = driver.replication.claim("worker", Random(1), lambda: None)
    assert claim is not None
    assert sum(counted for _, counted in answers) <= 2 * PAGE
    assert list(driver.replication.holders()) == [claim.ledger]
