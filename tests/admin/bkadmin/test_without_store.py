"""Commands that ask a running bookie whose metadata store is silent: they show what the bookie itself knows."""

import socket
from collections.abc import Callable, Iterator

import pytest

from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess
from tests.server.test_lifecycle import add

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")


@pytest.fixture
def alone(bookies: Callable[..., list[BookieProcess]]) -> Iterator[BookieProcess]:
    """A bookie with one entry of ledger 1, whose metadata store is frozen."""
    owner, bookie = bookies(2)
    with socket.create_connection(bookie.address) as connection:
        assert add(connection, 1, 0, b"x" * 100) == 0
    owner.freeze()
    yield bookie
    owner.thaw()


def test_status_without_the_store(alone: BookieProcess, bkadmin: BkAdmin) -> None:
    """State, disks and version are shown, what the store has is named as missing, and the exit code is 3."""
    status = bkadmin("status", "--admin", alone.admin, "-o", "json")
    assert status.code == 3
    shown = status.json
    assert (shown["bookie"], shown["state"], shown["process"]) == (alone.id, "writable", alone.pid)
    assert [one["kind"] for one in shown["disks"]] == ["ledger", "journal"]
    assert not any(shown[name] for name in ("instance_id", "features", "endpoints", "cookie"))
    assert "did not answer" in shown["problem"]
    assert "could not ask its metadata store for instance_id, features, endpoints and cookie" in status.err
    soon = bkadmin("status", "--admin", alone.admin, "--timeout", 2)
    assert soon.code == 3
    assert "state: writable" in soon.out
    assert bkadmin("readonly", "--admin", alone.admin, "-o", "json").json["state"] == "writable"


@pytest.mark.thorough
def test_stored_data_without_the_store(alone: BookieProcess, bkadmin: BkAdmin) -> None:
    """What is stored is shown; that digests were not verified, or which ledgers exist is not known, is a problem."""
    asked = ("--admin", alone.admin, "-o", "json")
    assert bkadmin("flush", "--admin", alone.admin).code == 0
    ledger = bkadmin("ledger", 1, *asked)
    assert (ledger.code, ledger.json["count"], ledger.json["fenced"]) == (0, 1, False)
    strange = bkadmin("ledger", 2, *asked)
    assert strange.code == 1
    assert "not on this bookie, and the metadata store could not be asked" in strange.err
    entries = bkadmin("readledger", 1, *asked)
    assert (entries.code, entries.json["count"]) == (3, 1)
    assert "could not be asked, so the digest was not verified" in entries.json["entries"][0]["problem"]
    log = bkadmin("entrylogs", *asked).json["logs"][0]["log"]
    ledgers = bkadmin("entrylogs", log, *asked)
    assert ledgers.code == 3
    assert [(one["ledger"], one["active"]) for one in ledgers.json["ledgers"]] == [(1, None)]
    assert "did not answer" in ledgers.json["problem"]


@pytest.mark.thorough
def test_actions_without_the_store(alone: BookieProcess, bkadmin: BkAdmin) -> None:
    """The caller hears which part the store did not take, and not that the bookie is out of reach."""
    sanity = bkadmin("sanity", "--admin", alone.admin, "-o", "json")
    assert (sanity.code, sanity.json["passed"]) == (3, False)
    assert "did not answer" in sanity.json["problem"]
    switched = bkadmin("readonly", "on", "--admin", alone.admin, "--timeout", 4)
    assert switched.code == 1
    assert "the bookie is read-only now, but the metadata store did not take its registration" in switched.err
    assert "connection lost" not in switched.err
    shown = bkadmin("readonly", "--admin", alone.admin, "-o", "json")
    assert (shown.code, shown.json["reasons"]) == (0, ["operator"])
    announced = bkadmin("write-close", 1, "--admin", alone.admin, "-o", "json")
    assert announced.code == 3
    assert "did not answer" in announced.json["bookies"][0]["state"]
