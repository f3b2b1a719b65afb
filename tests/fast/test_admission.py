"""Test the limits of requests in progress, on real sockets while the disk stalls: requests beyond a limit are refused,
or not read until others are done.
"""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookie.auth.token import TokenClient, TokenServer
from bookie.auth.token_file import parse
from bookie.pb import wire_pb2 as wire
from tests.fixtures.faults import go_on
from tests.hostile import v3
from tests.hostile.auth_frames import log_in
from tests.hostile.local import local_bookie
from tests.hostile.peer import KEY, Peer, add, batch, entry_of, read
from tests.reference.wire_v2 import Request

FENCE = 1
HIGH_PRIORITY = 4
RECOVERY = 6
FENCED = 104
TOO_MANY = 106
ONE_LOOP: dict[str, Any] = {"io_threads": 1}


def adds(ids: range, flags: int = 0) -> list[Request]:
    """Return small adds to ledger 1."""
    return [add(1, entry, b"x", flags=flags) for entry in ids]


def stand_still(faulty: ModuleType, peer: Peer, *requests: Request) -> None:
    """Send requests and wait until the sync of their group stalls."""
    rule = faulty.plan("fdatasync", "STALL", suffix=".txn")
    peer.send(*requests)
    assert faulty.wait_hit(rule, 30.0)


def test_more_adds_than_may_wait(tmp_path: Path, faulty: ModuleType) -> None:
    """Adds, forces and LACs beyond the limit of the loop are refused at once; recovery adds and reads are accepted."""
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), pending_adds_max=10, **ONE_LOOP) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
        bookie.peer() as newer,
    ):
        peer.send(*adds(range(5)))
        assert [peer.answer().code for _ in range(5)] == [0] * 5
        stand_still(faulty, peer, *adds(range(5, 15)))
        refused = [other.ask(request).code for request in adds(range(100, 103))]
        assert refused == [TOO_MANY] * 3
        for request in (v3.write_lac(1, 0), v3.force(1)):
            assert v3.ask(newer, request).status == wire.ETOOMANYREQUESTS
        assert other.ask(read(1, 0)).code == 0
        other.send(*adds(range(200, 202), RECOVERY))
        assert other.ask(read(1, 1)).code == 0
        assert bookie.stat("refused_adds") == 5
        go_on()
        assert {peer.answer().code for _ in range(10)} == {0}
        assert {other.answer().code for _ in range(2)} == {0}
        assert other.ask(add(1, 300, b"x")).code == 0


def test_more_requests_of_one_connection_than_may_wait(tmp_path: Path, faulty: ModuleType) -> None:
    """Only the connection with too many requests is refused."""
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), pending_per_connection_max=10, **ONE_LOOP) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        peer.send(*adds(range(5)))
        assert [peer.answer().code for _ in range(5)] == [0] * 5
        stand_still(faulty, peer, *adds(range(5, 15)))
        peer.send(*adds(range(15, 18)), read(1, 0))
        assert [peer.answer().code for _ in range(4)] == [TOO_MANY] * 4
        assert other.ask(read(1, 0)).code == 0
        other.send(*adds(range(20, 22)))
        go_on()
        assert {peer.answer().code for _ in range(10)} == {0}
        assert {other.answer().code for _ in range(2)} == {0}
        assert bookie.stat("refused_by_connection") == 4
        assert peer.ask(read(1, 0)).code == 0


URGENT = {
    "fences": read(1, 0, flags=FENCE, key=KEY),
    "fences of batches": batch(1, 0, flags=FENCE, key=KEY),
    "recovery adds": add(1, 0, b"x", flags=RECOVERY),
}


@pytest.mark.parametrize("limit", ["pending_adds_max", "pending_per_connection_max"])
@pytest.mark.parametrize("urgent", URGENT.values(), ids=URGENT)
def test_a_flood_of_what_recoveries_ask_ends(tmp_path: Path, faulty: ModuleType, urgent: Request, limit: str) -> None:
    """While the sync stalls, fences and recovery adds have a limit of their own above that of adds. An address gets an
    eighth of it, and its other urgent requests are refused.
    """
    settings: dict[str, Any] = {limit: 8, "pending_urgent_max": 16, **ONE_LOOP}
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), **settings) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        assert peer.ask(add(1, 0, b"x")).code == 0
        stand_still(faulty, peer, *adds(range(1, 9)))
        assert peer.ask(add(1, 9, b"x")).code == TOO_MANY
        peer.send(*[urgent] * 1000)
        assert {peer.answer().code for _ in range(998)} == {TOO_MANY}
        assert bookie.stat("adds_in_progress") == 10
        assert bookie.stat("refused_urgent") == 998
        if limit == "pending_per_connection_max":
            other.send(urgent)
            bookie.until("adds_in_progress", lambda waiting: waiting == 11)
        go_on()
        assert {peer.answer().code for _ in range(10)} == {0}
        assert peer.ask(urgent).code == 0


@pytest.mark.parametrize("urgent", URGENT.values(), ids=URGENT)
@pytest.mark.parametrize("ends", ["answered", "gone"])
def test_an_address_has_its_share_of_what_is_urgent(
    tmp_path: Path, faulty: ModuleType, urgent: Request, ends: str
) -> None:
    """Any client can set the bit for high priority. A client that floods with it, over however many connections,
    leaves room for recoveries by others, and gets its share again when its requests are answered or its connection is
    gone.
    """
    settings: dict[str, Any] = {"pending_adds_max": 8, "pending_urgent_max": 16, **ONE_LOOP}
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), **settings) as bookie,
        bookie.peer() as writer,
        bookie.peer(source="127.0.0.9") as flooder,
        bookie.peer(source="127.0.0.9") as second,
        bookie.peer(source="127.0.0.10") as recovery,
    ):
        assert writer.ask(add(1, 0, b"x")).code == 0
        stand_still(faulty, writer, *adds(range(1, 9)))
        flooder.send(*[urgent] * 100)
        assert {flooder.answer().code for _ in range(98)} == {TOO_MANY}
        assert second.ask(urgent).code == TOO_MANY
        recovery.send(urgent, urgent, urgent)
        assert recovery.answer().code == TOO_MANY, "the third is one too many of its own"
        assert bookie.stat("adds_in_progress") == 12
        if ends == "gone":
            flooder.abort()
            bookie.until("connections", lambda count: count == 3)
            second.send(urgent, urgent, urgent)
            assert second.answer().code == TOO_MANY
            assert bookie.stat("adds_in_progress") == 14
        go_on()
        assert {recovery.answer().code for _ in range(2)} == {0}
        assert {writer.answer().code for _ in range(8)} == {0}
        second.send(urgent, urgent) if ends == "answered" else None
        assert {second.answer().code for _ in range(2)} == {0}


@pytest.mark.parametrize(("role", "passes"), [("read", False), ("write", True)])
def test_where_clients_log_in_what_is_urgent_is_for_writers(
    tmp_path: Path, faulty: ModuleType, role: str, passes: bool
) -> None:
    """The role `read` gets nothing of the urgent limit, whatever bit it sets; the role `write` may use all of it."""
    token = f"{role}-token-of-enough-bytes"
    provider = TokenServer(parse([f"{role}:{token}"], "here"))
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        peer.send(*(add(ledger, 0, bytes(100_000)) for ledger in range(20)))
        assert [peer.answer().code for _ in range(20)] == [0] * 20
        assert bookie.storage.checkpoint()
    settings: dict[str, Any] = {"pending_reads_max": 4, "pending_urgent_max": 8, **ONE_LOOP}
    files = faulty.FaultyFiles()
    with local_bookie(tmp_path, files=files, provider=provider, **settings) as bookie, bookie.peer() as peer:
        log_in(peer, 2, "token", TokenClient(token.encode()).session(""))
        rule = faulty.plan("pread", "STALL", suffix=".log", times=100)
        peer.send(*(batch(ledger, 0, flags=HIGH_PRIORITY, request_id=ledger) for ledger in range(12)))
        assert faulty.wait_hit(rule, 30.0)
        if not passes:
            assert {peer.answer().code for _ in range(8)} == {TOO_MANY}
        go_on()
        assert {peer.answer().code for _ in range(12 if passes else 4)} == {0}


def test_urgent_reads_of_an_address_have_an_end(tmp_path: Path, faulty: ModuleType) -> None:
    """Urgent reads pass the limit of reads that wait for the disk, but only within the share of their address."""
    cold(tmp_path)
    settings: dict[str, Any] = {"pending_reads_max": 4, "pending_urgent_max": 16, **ONE_LOOP}
    with local_bookie(tmp_path, files=faulty.FaultyFiles(), **settings) as bookie, bookie.peer() as peer:
        rule = faulty.plan("pread", "STALL", suffix=".log", times=100)
        peer.send(*(batch(ledger, 0, flags=HIGH_PRIORITY, request_id=ledger) for ledger in range(10)))
        assert faulty.wait_hit(rule, 30.0)
        assert {peer.answer().code for _ in range(6)} == {TOO_MANY}
        assert bookie.stat("reads_in_progress") == 4
        with bookie.peer(source="127.0.0.10") as other:
            other.send(
                batch(9, 0, flags=HIGH_PRIORITY), batch(8, 0, flags=HIGH_PRIORITY), batch(7, 0, flags=HIGH_PRIORITY)
            )
            assert other.answer().code == TOO_MANY
            go_on()
            assert {other.answer().code for _ in range(2)} == {0}
        assert {peer.answer().code for _ in range(4)} == {0}


def test_a_ledger_is_fenced_once(tmp_path: Path, faulty: ModuleType) -> None:
    """Fences of a ledger whose fence is not synced yet wait for its sync; none adds a record or is answered before."""
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), **ONE_LOOP) as bookie,
        bookie.peer() as peer,
        bookie.peer() as other,
    ):
        assert peer.ask(add(1, 0, b"x")).code == 0
        stand_still(faulty, peer, *adds(range(1, 11)))
        fence = read(1, 0, flags=FENCE, key=KEY)
        peer.send(*[fence] * 100)
        other.send(fence)
        bookie.until("adds_in_progress", lambda waiting: waiting == 111)
        queued = bookie.stat("journal_queued_records")
        go_on()
        assert {peer.answer().code for _ in range(110)} == {0}
        assert other.answer().code == 0
        assert queued == 1
        assert other.ask(add(1, 11, b"x")).code == FENCED


def test_adds_that_wait_for_others_go_on_with_their_acknowledgements(tmp_path: Path) -> None:
    """With a single add in progress at a time, the next one is read when its predecessor is acknowledged. It waited for
    a tick of the loop, so that this took 80 s.
    """
    with (
        local_bookie(tmp_path, adds_in_progress_max=1, sync_data=False, **ONE_LOOP) as bookie,
        bookie.peer() as peer,
    ):
        peer.send(*adds(range(8000)))
        bookie.until("adds", lambda served: served == 8000)
        assert {peer.answer().code for _ in range(8000)} == {0}


def test_adds_in_progress_stop_the_reading(tmp_path: Path, faulty: ModuleType) -> None:
    """Adds beyond this limit are not refused: they are read and served in order when the disk continues."""
    with (
        local_bookie(tmp_path, files=faulty.FaultyFiles(), adds_in_progress_max=10, **ONE_LOOP) as bookie,
        bookie.peer() as peer,
    ):
        peer.send(*adds(range(5)))
        assert [peer.answer().code for _ in range(5)] == [0] * 5
        stand_still(faulty, peer, *adds(range(5, 500)))
        bookie.until("held_back", lambda times: times > 0)
        assert bookie.stat("adds") == 15
        go_on()
        answers = [peer.answer() for _ in range(495)]
        assert [(answer.code, answer.entry) for answer in answers] == [(0, entry) for entry in range(5, 500)]


def cold(directory: Path) -> None:
    """Write ten ledgers of one large entry each, which are only on disk afterwards."""
    with local_bookie(directory) as bookie, bookie.peer() as peer:
        peer.send(*(add(ledger, 0, bytes(100_000)) for ledger in range(10)))
        assert [peer.answer().code for _ in range(10)] == [0] * 10
        assert bookie.storage.checkpoint()


@pytest.mark.parametrize("limit", ["pending_reads_max", "reads_in_progress_max"])
def test_more_reads_than_may_wait(tmp_path: Path, faulty: ModuleType, limit: str) -> None:
    """While the disk stalls, reads beyond one limit are refused, beyond the other not read. High priority passes."""
    cold(tmp_path)
    settings: dict[str, Any] = {limit: 4, **ONE_LOOP}
    with local_bookie(tmp_path, files=faulty.FaultyFiles(), **settings) as bookie, bookie.peer() as peer:
        rule = faulty.plan("pread", "STALL", suffix=".log", times=100)
        peer.send(*(read(ledger, 0) for ledger in range(8)), batch(8, 0, flags=HIGH_PRIORITY, request_id=9))
        assert faulty.wait_hit(rule, 30.0)
        if limit == "pending_reads_max":
            refused = [peer.answer() for _ in range(4)]
            assert [(answer.code, answer.ledger) for answer in refused] == [(TOO_MANY, at) for at in range(4, 8)]
            assert bookie.stat("refused_reads") == 4
        else:
            bookie.until("held_back", lambda times: times > 0)
            assert bookie.stat("reads") == 4
        go_on()
        left = 5 if limit == "pending_reads_max" else 9
        answers = [peer.answer() for _ in range(left)]
        assert {answer.code for answer in answers} == {0}
        assert {answer.ledger for answer in answers} == ({*range(4), 8} if left == 5 else set(range(9)))
        assert all(answer.body[-100_000:] == entry_of(1, 0, bytes(100_000))[-100_000:] for answer in answers)
