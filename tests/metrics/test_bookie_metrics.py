"""Tests of a live bookie's metrics: names that dashboards ask for, well-formed families and correct values."""

import math
import re
from pathlib import Path

import pytest

from bookie.client import Channel, Digest
from bookie.errors import NoSuchEntry
from bookie.metrics.family import Family, Kind
from bookie.server.configuration.loader import load
from bookie.server.lifecycle import Bookie
from bookie.server.process.supervisor import Supervisor
from tests.fixtures.whole_bookie import Running

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")


def values(families: object) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return the values by the name with its suffix, then by labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in families:  # type: ignore[attr-defined]
        for value, labels, suffix in family.samples:
            found.setdefault(family.name + suffix, {})[labels] = value
    return found


def test_families_are_well_formed(running: Running) -> None:
    """Prometheus accepts every name, no family and no sample appears twice, and each family has a help text."""
    families: list[Family] = list(running.bookie.metrics())
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert NAME.match(family.name), family.name
        assert family.help.endswith("."), family.name
        assert family.samples, family.name
        keys = [(suffix, labels) for _, labels, suffix in family.samples]
        assert len(set(keys)) == len(keys), family.name
        if family.name.startswith("pybookie_"):
            assert (family.kind is Kind.COUNTER) == family.name.endswith("_total"), family.name
            assert not re.search(r"_(ms|ns|us|mb|kb)(_|\Z)", family.name), family.name


def test_what_is_added_and_read_is_counted(running: Running) -> None:
    """Ten entries of a ledger count in the directory and the journal that they belong to, and nowhere else."""
    one, (host, port) = running.bookie, running.address
    with Channel.connect(host, port) as channel:
        for entry in range(10):
            channel.add(4, entry, b"x" * 100, digest=Digest.of(password=b""), lac=entry - 1, length=100 * (entry + 1))
        channel.read(4, 3)
        with pytest.raises(NoSuchEntry):
            channel.read(4, 30)
        found = values(one.metrics())
    one.checkpoint()
    flushed = values(one.metrics())
    assert found["bookie_SERVER_STATUS"] == {(): 1}
    assert found["bookie_WRITE_BYTES"][()] >= 1000
    assert sorted(found["bookie_write_cache_count"].values()) == [0, 10]
    assert sorted(found["bookie_ledgers_count"].values()) == [0, 1]
    assert [dict(labels).keys() for labels in found["bookie_write_cache_size"]] == [{"ledgerDir", "indexDir"}] * 2
    # A ledger's key is journaled before its first entry.
    assert {dict(k)["journalIndex"]: v for k, v in found["pybookie_journal_records_total"].items()} == {"0": 11, "1": 0}
    assert found["pybookie_read_entries_total"] == {(): 1}
    assert found["bookie_READ_BYTES"] == {(): 32 + 4 + 100}
    for name, good, bad in (("ADD_ENTRY_REQUEST", 10, 0), ("READ_ENTRY_REQUEST", 1, 1)):
        counts = found[f"bookkeeper_server_{name}_count"]
        assert counts == {(("success", "true"),): good, (("success", "false"),): bad}
        assert found[f"bookkeeper_server_{name}_sum"][("success", "true"),] > 0
    added = found["bookie_journal_JOURNAL_ADD_ENTRY_count"]
    assert {dict(k)["journalIndex"]: v for k, v in added.items() if ("success", "true") in k} == {"0": 10, "1": 0}
    assert sum(flushed["bookie_flush_size_sum"].values()) >= 1000
    assert found["bookie_ledger_num_dirs"] == {(): 2}
    assert all(math.isfinite(value) for value in found["process_resident_memory_bytes"].values())


DASHBOARDS = """
    bookie_BOOKIE_ADD_ENTRY bookie_entry_log_usage_buckets_le_10 bookie_flush bookie_flush_size
    bookie_journal_JOURNAL_ADD_ENTRY bookie_journal_JOURNAL_FORCE_WRITE_QUEUE_SIZE
    bookie_journal_JOURNAL_QUEUE_SIZE bookie_journal_JOURNAL_SYNC bookie_ledger_num_dirs bookie_ledger_writable_dirs
    bookie_ledgers_count bookie_READ_BYTES bookie_read_cache_hits bookie_read_cache_misses bookie_read_cache_size
    bookie_rejected_write_requests bookie_SERVER_STATUS bookie_throttled_write_requests bookie_WRITE_BYTES
    bookie_write_cache_count bookie_write_cache_hits bookie_write_cache_size bookkeeper_server_ADD_ENTRY
    bookkeeper_server_ADD_ENTRY_BLOCKED bookkeeper_server_ADD_ENTRY_IN_PROGRESS bookkeeper_server_ADD_ENTRY_REQUEST
    bookkeeper_server_BATCH_READ_ENTRY_REQUEST bookkeeper_server_BATCH_READ_ENTRY_RESPONSE_SIZE
    bookkeeper_server_BookieReadThreadPool_threads bookkeeper_server_READ_ENTRY bookkeeper_server_READ_ENTRY_REQUEST
    jvm_memory_direct_bytes_max jvm_memory_direct_bytes_used
""".split()  # noqa: SIM905 - a list would need a line for each word


def test_what_public_dashboards_ask_for(running: Running) -> None:
    """Every metric of Apache BookKeeper that public dashboards draw is shown."""
    assert set(DASHBOARDS) <= {family.name for family in running.bookie.metrics()}


def test_a_stopped_bookie_is_not_registered(running: Running) -> None:
    """Its metrics can still be read, and its status is -1."""
    running.bookie.stop()
    assert values(running.bookie.metrics())["bookie_SERVER_STATUS"] == {(): -1}


def test_statistics_can_be_off(tmp_path: Path) -> None:
    """With `enableStatistics=false` no metric is shown."""
    conf = tmp_path / "bk.conf"
    conf.write_text(
        f"allowLoopback=true\nenableStatistics=false\njournalDirectories={tmp_path}/j\nledgerDirectories={tmp_path}/l\n"
        f"metadataServiceUri=lmdb://{tmp_path}/m\nbookieId=one\n"
    )
    assert list(Bookie(load(conf, {}).settings, Supervisor(), lambda _: None).metrics()) == []
