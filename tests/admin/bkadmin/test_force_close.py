"""`bkadmin recover --force-close`: an operator sees what is lost, and then closes the ledger."""

from collections.abc import Callable

import pytest

from bookie.client import BookKeeper
from bookie.local import LocalCluster
from tests.admin.bkadmin.conftest import BkAdmin

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
pytest_plugins = ["bookie.local.fixtures"]


@pytest.mark.thorough
def test_a_ledger_without_its_bookies_is_closed_by_force(
    new_bookie_cluster: Callable[..., LocalCluster], bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is forced while a recovery would do; a dry run and a question come before; the rest can be read."""
    cluster = new_bookie_cluster(3)
    monkeypatch.setenv("BOOKIE_METADATA_URI", cluster.uri)
    with BookKeeper(cluster.uri) as bk:
        handle = bk.create_ledger(ensemble_size=3, write_quorum_size=2, ack_quorum_size=2, password=b"")
        for number in range(6):
            handle.append(b"entry %d" % number)
        ledger = handle.id
        ensemble = handle.metadata.segments[0].bookies
        refused = bkadmin("recover", "--force-close", ledger, "--yes")
        assert refused.code == 1
        assert "a recovery can close it" in refused.err
        for bookie in cluster.bookies[1:]:
            bookie.stop()
    kept = ensemble.index(cluster.bookies[0].id)
    lost = [entry for entry in range(6) if kept not in {entry % 3, (entry + 1) % 3}]
    last = max(entry for entry in range(6) if entry not in lost)
    assert bkadmin("readledger", ledger, "-r").code == 1
    assert bkadmin("recover").code == 2
    looked = bkadmin("recover", "--force-close", ledger, "--dry-run", "-o", "json").json["ledgers"][0]
    known = [[entry, entry] for entry in lost if entry <= max(last, looked["last_confirmed"])]
    assert (looked["state"], looked["last_entry"], looked["lost"]) == ("to close", last, known)
    assert sorted(looked["gone"]) == sorted(bookie.id for bookie in cluster.bookies[1:])
    assert bkadmin("recover", "--force-close", ledger).code == 1  # nobody can answer the question
    assert bkadmin("ledgermetadata", ledger, "-o", "json").json["state"] != "CLOSED"
    done = bkadmin("recover", "--force-close", ledger, "--yes", "-o", "json")
    assert done.json["ledgers"] == [{**looked, "state": "closed"}], done.err
    assert bkadmin("ledgermetadata", ledger, "-o", "json").json["last_entry"] == last
    with BookKeeper(cluster.uri) as bk, bk.open_ledger(ledger, password=b"") as reader:
        assert bytes(reader.read(last, last)[0].data) == b"entry %d" % last
