"""One of three real bookies loses its disks: it is stamped, distrusted, started empty, and repaired from the others."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie.client import Channel, ChannelV3, Digest, DigestType, Flags
from bookie.errors import DataUnknown, LedgerFenced, NoSuchEntry, NoSuchLedger, ReadError
from bookie.metadata import open_driver
from bookie.metadata.driver import MetadataDriver
from bookie.metadata.records.ledger_metadata import DigestType as StoredDigestType
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.repair.distrust import clear_limbo, mark_distrusted
from bookie.repair.integrity import IntegrityReport, LedgerChecked, check_bookie, ledgers_of
from bookie.repair.peers import Connect, connect_by_metadata
from bookie.storage.tools.cookie_files import compare_cookies, rewrite_cookie, show_cookies
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.lossy_proxy import LossyProxy

PASSWORD = b"secret"
CLOSED, STRIPED, OPEN, GROWN, EMPTY = 1, 2, 3, 4, 5
ENTRIES = 1200


class Cluster:
    """Three bookies, their metadata, and what was written."""

    def __init__(self, bookies: list[BookieProcess], driver: MetadataDriver) -> None:
        self.bookies = bookies
        self.driver = driver
        self.stored: dict[tuple[int, int], bytes] = {}
        self.channels = {bookie.id: Channel.connect(*bookie.address) for bookie in bookies}

    def write(
        self, ledger: int, write_quorum: int, segments: list[tuple[int, list[int]]], end: int, state: int
    ) -> None:
        """Write a ledger with entries up to `end`, each to its write set."""
        kinds = {CLOSED: DigestType.CRC32C, STRIPED: DigestType.HMAC, OPEN: DigestType.CRC32}
        kind = kinds.get(ledger, DigestType.DUMMY)
        digest = Digest.of(kind, PASSWORD)
        placed = tuple(Segment(first, tuple(self.bookies[i].id for i in who)) for first, who in segments)
        closed = state == LedgerState.CLOSED
        metadata = LedgerMetadata(
            ensemble_size=len(placed[0].bookies),
            write_quorum=write_quorum,
            ack_quorum=write_quorum,
            segments=placed,
            state=LedgerState(state),
            last_entry=end - 1 if closed else -1,
            length=8 * end if closed else 0,
            digest_type=StoredDigestType(kind),
            password=PASSWORD,
        )
        self.driver.ledgers.create(ledger, metadata)
        replies = []
        for entry in range(end):
            payload = (ledger * 10_000 + entry).to_bytes(8, "big") * (1 + entry % 40)
            data = digest.seal(ledger, entry, payload, lac=entry - 1, length=8 * (entry + 1))
            self.stored[ledger, entry] = data
            for bookie_id in metadata.write_set(entry):
                replies.append(self.channels[bookie_id].add_stored_async(data, digest.master_key))
        for reply in replies:
            reply.result()

    def check(
        self, victim: BookieProcess, *, repair: bool, connect: Connect | None = None
    ) -> tuple[IntegrityReport, dict[int, LedgerChecked]]:
        """Return the result of `check_bookie`, and each ledger's part of it."""
        rows: dict[int, LedgerChecked] = {}

        def on_ledger(row: LedgerChecked) -> None:
            rows[row.ledger] = row

        with ChannelV3.connect(*victim.address) as lister, Channel.connect(*victim.address) as target:
            report = check_bookie(
                victim.id,
                self.driver.ledgers,
                lister=lister,
                target=target if repair else None,
                connect=connect or connect_by_metadata(self.driver),
                on_ledger=on_ledger,
            )
        return report, rows

    def close(self) -> None:
        for channel in self.channels.values():
            channel.close()
        self.driver.stop()


@pytest.fixture
def cluster(bookies: Callable[..., list[BookieProcess]]) -> Iterator[Cluster]:
    """A cluster with ledgers of every kind: closed, striped, open, with a changed ensemble, and empty."""
    started = bookies(3)
    driver = open_driver(f"grpc://{started[0].admin}")
    driver.start()
    made = Cluster(started, driver)
    try:
        made.write(CLOSED, 3, [(0, [0, 1, 2])], ENTRIES, LedgerState.CLOSED)
        made.write(STRIPED, 2, [(0, [2, 0, 1])], ENTRIES, LedgerState.CLOSED)
        made.write(OPEN, 3, [(0, [0, 1, 2])], 50, LedgerState.OPEN)
        made.write(GROWN, 2, [(0, [1, 2]), (30, [0, 1])], 60, LedgerState.IN_RECOVERY)
        made.write(EMPTY, 3, [(0, [1, 2, 0])], 0, LedgerState.CLOSED)
        yield made
    finally:
        made.close()


def lose_disks(cluster: Cluster, victim: BookieProcess) -> None:
    """Stop a bookie and empty its directories; then stamp them, and distrust what was lost, as an operator does."""
    cluster.channels.pop(victim.id).close()
    assert victim.stop() == 0
    directories = [victim.journal, victim.ledgers]
    for directory in directories:
        shutil.rmtree(directory)
        (directory / "current").mkdir(parents=True)
    found = show_cookies(victim.id, cluster.driver.cookies, directories)
    assert [bool(one.problem) for one in compare_cookies(found)] == [False, True, True]
    assert found[0].cookie is not None
    for directory in directories:
        rewrite_cookie(directory, found[0].cookie)


def index_of(bookie: BookieProcess) -> Path:
    return bookie.ledgers / "current" / "locations.lmdb"


@pytest.mark.thorough
def test_b17_a_lost_disk_is_repaired_byte_for_byte(cluster: Cluster) -> None:
    """Everything that must be here is, exactly as the others hold it; what cannot be known is in limbo, not absent.

    Starts and repairs do not change that. When limbo is cleared, unknown becomes absent; the fence stays.
    """
    victim = cluster.bookies[2]
    lose_disks(cluster, victim)
    ledgers = list(ledgers_of(cluster.driver.ledgers, victim.id))
    done = mark_distrusted(victim.id, ledgers, [index_of(victim)])
    assert (done.ledgers, done.created, done.limbo) == (5, 5, (OPEN,))
    assert mark_distrusted(victim.id, ledgers, [index_of(victim)]).created == 0
    victim.start()

    report, rows = cluster.check(victim, repair=False)
    wanted = {CLOSED: ENTRIES, STRIPED: len([e for e in range(ENTRIES) if e % 3 != 1]), OPEN: 0, GROWN: 30, EMPTY: 0}
    assert {ledger: row.missing for ledger, row in rows.items()} == wanted
    assert (report.missing, report.copied, report.untrusted) == (sum(wanted.values()), 0, (OPEN,))

    report, rows = cluster.check(victim, repair=True)
    assert report.whole, report.incomplete
    assert (report.missing, report.copied) == (sum(wanted.values()), sum(wanted.values()))
    report, _ = cluster.check(victim, repair=True)
    assert (report.missing, report.copied, report.untrusted) == (0, 0, (OPEN,))

    victim.restart()
    with Channel.connect(*victim.address) as channel:
        for (ledger, entry), data in cluster.stored.items():
            held = cluster.driver.ledgers.read(ledger).value
            if ledger != OPEN and victim.id in held.write_set(entry) and (ledger != GROWN or entry < 30):
                assert channel.read(ledger, entry) == data
            elif ledger == CLOSED:
                raise AssertionError(f"entry {entry} of the closed ledger was not expected here")
        with pytest.raises(NoSuchEntry):
            channel.read(STRIPED, 1)
        digest = Digest.of(DigestType.CRC32, PASSWORD)
        with pytest.raises(LedgerFenced):
            channel.add(OPEN, 50, b"late", digest=digest, lac=0, length=1)
        with pytest.raises(ReadError):
            channel.read(OPEN, 3)
    with ChannelV3.connect(*victim.address) as channel, pytest.raises(DataUnknown):
        channel.read(OPEN, 3)

    assert victim.stop() == 0
    assert clear_limbo([OPEN, CLOSED, 77], [index_of(victim)]) == 1
    victim.start()
    with ChannelV3.connect(*victim.address) as channel:
        with pytest.raises(NoSuchEntry):
            channel.read(OPEN, 3)
        with pytest.raises(LedgerFenced):
            channel.add(OPEN, 50, b"late", digest=digest, lac=0, length=1)


def test_damaged_and_absent_replicas_are_passed_over(cluster: Cluster) -> None:
    """A replica with a wrong digest is not copied; the next one is. Entries without a replica are named."""
    victim, other, third = cluster.bookies
    digest = Digest.of(DigestType.CRC32C, PASSWORD)
    ledger = 9
    ids = [bookie.id for bookie in cluster.bookies]
    metadata = LedgerMetadata(
        ensemble_size=3,
        write_quorum=3,
        ack_quorum=2,
        segments=(Segment(0, tuple(ids)),),
        state=LedgerState.CLOSED,
        last_entry=19,
        digest_type=StoredDigestType.CRC32C,
        password=PASSWORD,
    )
    cluster.driver.ledgers.create(ledger, metadata)
    for entry in range(20):
        data = digest.seal(ledger, entry, b"payload", lac=entry - 1, length=7 * (entry + 1))
        for bookie in (other, third):
            if entry == 7 or (entry, bookie) == (11, other):
                continue
            bad = (entry, bookie) == (3, other)
            stored = data[:-1] + b"?" if bad else data
            cluster.channels[bookie.id].add_stored_async(stored, digest.master_key, flags=Flags.RECOVERY_ADD).result()
        cluster.stored[ledger, entry] = data
    report, rows = cluster.check(victim, repair=True)
    row = rows[ledger]
    assert (row.expected, row.missing, row.copied, row.lost) == (20, 20, 19, (7,))
    assert [one.ledger for one in report.incomplete] == [ledger]
    assert third.id in row.problem
    with Channel.connect(*victim.address) as channel:
        for entry in range(20):
            if entry != 7:
                assert channel.read(ledger, entry) == cluster.stored[ledger, entry]
        with pytest.raises((NoSuchEntry, NoSuchLedger)):
            channel.read(ledger, 7)
    without_a_replica(cluster)


class OldBookie(LossyProxy):
    """A proxy that closes the connection at every batch read, like Apache BookKeeper's bookies before 4.17."""

    BATCH_READ = bytes([2, 7, 0, Flags.HIGH_PRIORITY])  # version, operation, flags

    def _must_lose(self, data: bytes) -> bool:
        return self.BATCH_READ in data


@pytest.mark.thorough
def test_replicas_without_batch_reads(cluster: Cluster) -> None:
    """Each replica gets one batch read, and is then read entry by entry."""
    *others, victim = cluster.bookies
    old = {bookie.id: OldBookie(bookie.port) for bookie in others}
    try:
        lose_disks(cluster, victim)
        victim.start()
        report, rows = cluster.check(
            victim, repair=True, connect=lambda bookie: Channel.connect("127.0.0.1", old[bookie].port)
        )
        assert report.whole, report.incomplete
        assert rows[CLOSED].copied == ENTRIES
        assert [proxy.losses for proxy in old.values()] == [1, 1]
        with Channel.connect(*victim.address) as channel:
            for entry in range(ENTRIES):
                assert channel.read(CLOSED, entry) == cluster.stored[CLOSED, entry]
    finally:
        for proxy in old.values():
            proxy.stop()


def without_a_replica(cluster: Cluster) -> None:
    """While another bookie is down, the entries that only it has are named as lost for now, with the reason."""
    victim = cluster.bookies[2]
    lose_disks(cluster, victim)
    victim.start()
    down = cluster.bookies[1]
    cluster.channels.pop(down.id).close()
    down.kill()
    report, rows = cluster.check(victim, repair=True)
    assert list(report.unreachable) == [down.id]
    assert (rows[CLOSED].copied, rows[CLOSED].lost) == (ENTRIES, ())
    assert rows[GROWN].copied == 0
    assert rows[GROWN].lost == tuple(range(30))
    assert down.id in rows[GROWN].problem
    assert rows[STRIPED].missing > rows[STRIPED].copied > 0
