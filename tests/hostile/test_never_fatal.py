"""No client's requests end the process (docs/fatal.md): workloads with the most flush work per byte.

Each is followed by a flush, a restart, and a check of everything that was acknowledged.
"""

import random
from pathlib import Path

import pytest

from bookie._fast.base import fatal
from bookie.pb import wire_pb2 as wire
from tests.hostile.local import LocalBookie, local_bookie
from tests.hostile.peer import Peer, add, entry_of, read
from tests.hostile.v3 import ask, packet, request, write_lac

LAST = 2**63 - 2
SEED = 20


def scattered(seeded_random: random.Random) -> list[tuple[int, int]]:
    """Return entries that are a run each, in memory and in the index, over all ids; some are repeated."""
    far = [seeded_random.randrange(LAST) for _ in range(3000)]
    return [(1, at) for at in (*far, *range(0, 6000, 2), *seeded_random.choices(far, k=1000), 0, LAST)]


def backwards(_: random.Random) -> list[tuple[int, int]]:
    """Return entries of which none is ever the last of its ledger."""
    return [(1, at) for at in range(3000, 0, -1)] * 2


def many_ledgers(seeded_random: random.Random) -> list[tuple[int, int]]:
    """Return one entry per ledger, over all ledger ids."""
    return [(seeded_random.randrange(LAST), seeded_random.randrange(LAST)) for _ in range(4000)]


def interleaved(seeded_random: random.Random) -> list[tuple[int, int]]:
    """Return overlapping stretches, so that each row put in the index splits what the last flush stored."""
    starts = [seeded_random.randrange(4000) for _ in range(60)]
    return [
        (seeded_random.choice((1, 2)), at)
        for start in starts
        for at in range(start, start + 100, seeded_random.choice((1, 3)))
    ]


def acknowledged(peer: Peer, wanted: list[tuple[int, int]], version: bytes) -> dict[tuple[int, int], bytes]:
    """Return the entries that were acknowledged; the others were refused, and may be sent again later."""
    found = {}
    for ledger, at in wanted:
        answer = peer.ask(add(ledger, at, version, flags=2))
        if answer.code == 0:
            found[ledger, at] = entry_of(ledger, at, version)
    return found


def check(bookie: LocalBookie, wanted: dict[tuple[int, int], bytes]) -> None:
    """Check that the bookie serves these entries and denies none."""
    assert fatal.wait(0) is None
    with bookie.peer() as peer:
        for (ledger, at), data in wanted.items():
            assert peer.ask(read(ledger, at)).body == data


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [scattered, backwards, many_ledgers, interleaved])
def test_adds_of_any_shape(shape: object, tmp_path: Path) -> None:
    """There are two flushes, the second of which overrides what the first stored, and two starts."""
    assert callable(shape)
    wanted = shape(random.Random(SEED))
    kept: dict[tuple[int, int], bytes] = {}
    for version in (b"one", b"two"):
        with local_bookie(tmp_path) as bookie:
            with bookie.peer() as peer:
                kept |= acknowledged(peer, wanted, version)
            assert len(kept) == len(set(wanted))
            assert bookie.storage.checkpoint()
            check(bookie, kept)
    with local_bookie(tmp_path) as bookie:
        check(bookie, kept)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 36, 4096, 4097, 100_000])
def test_explicit_lacs_of_any_size(size: int, tmp_path: Path) -> None:
    """They are accepted or refused as specified, and the following flush and start handle the accepted ones."""
    body = (packet(1, 5) + bytes(size))[:size]
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert ask(peer, write_lac(1, 5)).status == wire.EOK
        fields = {"ledgerId": 1, "lac": 5, "masterKey": bytes(20), "body": body}
        found = ask(peer, request(wire.WRITE_LAC, fields)).status
        assert found in {wire.EOK, wire.EBADREQ, wire.EUA}
        assert bookie.storage.checkpoint()
        assert fatal.wait(0) is None
    with local_bookie(tmp_path) as bookie, bookie.peer() as peer:
        assert ask(peer, write_lac(1, 6)).status == wire.EOK
        assert bookie.stat("quarantined_ledgers") == 0
