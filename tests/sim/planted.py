"""Planted bugs. The judge must find each of them at the seed given with it; otherwise it misses violations.

A bug is in the bookies (`bookies`), between the client and its interfaces (`between`), or in the client's own code
(`patch`). `small` has the switches of the small client that do the same there.
"""

import contextlib
import math
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.write_window import WriteWindow
from bookie._fast.wire import record
from bookie._fast.wire.digest import Digester
from bookie.client.ledgers import writer
from bookie.client.replication.target import Target
from bookie.client.replication.worker import ReplicationWorker
from bookie.client.wire.answers_v3 import ReadAnswer
from bookie.client.wire.flags import LAST_ENTRY, Flags
from bookie.errors import BookKeeperError, NoSuchEntry, NoSuchLedger, RequestTimeout
from bookie.metadata.driver import Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie.metadata.records.replication import Claim
from tests.sim.client_bookies import ClientBookies, ModelSender
from tests.sim.direct import DirectLinks, DirectWriter
from tests.sim.draw import Draw
from tests.sim.model_store import ClientStore

__all__ = ["NOTHING", "Planted", "PLANTED"]

NEGATIVE = (NoSuchEntry, NoSuchLedger)


@dataclass(frozen=True, slots=True)
class Planted:
    """A planted bug: how to switch it on, and in which worlds it shows."""

    bookies: tuple[str, ...] = ()
    between: Callable[[ClientBookies, ClientStore, tuple[int, int, int]], None] | None = None
    patch: Callable[[], AbstractContextManager[None]] | None = None
    small: tuple[str, ...] = ()
    draw: Callable[[Draw], Draw] | None = None
    """Draws the worlds in which it shows, if it hardly ever does in ordinary ones."""

    def patched(self) -> AbstractContextManager[None]:
        return self.patch() if self.patch else contextlib.nullcontext()


NOTHING = Planted()

Sizes = tuple[int, int, int]


def ack_early(bookies: ClientBookies, _: ClientStore, sizes: Sizes) -> None:
    """One bookie's answer counts before it has come."""
    del sizes
    add = ModelSender.add

    def eager(sender: ModelSender, entry: int, stored: bytes) -> None:
        add(sender, entry, stored)
        if sender.bookies is bookies and not sender.flags & Flags.RECOVERY_ADD:
            first = bookies.__dict__.setdefault("_first", {})
            if first.setdefault(entry, sender) is sender:
                sender.answered(entry, 0)

    bookies.sender_add = eager


def no_writeback(bookies: ClientBookies, _: ClientStore, sizes: Sizes) -> None:
    """Recovery sends nothing, as if it had written the entries again."""
    del sizes

    def pretend(sender: ModelSender, entry: int, stored: bytes) -> None:
        if sender.flags & Flags.RECOVERY_ADD:
            sender.bookies.senders[sender.bookie].append(sender)
            sender.answered(entry, 0)
        else:
            ModelSender.add(sender, entry, stored)

    bookies.sender_add = pretend


def _reads(bookies: ClientBookies, around: Callable[..., Any]) -> None:
    """Put `around` between the client and `read`; its first argument is the real one."""
    real = bookies.read

    async def read(
        bookie: str, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None
    ) -> ReadAnswer:
        answer: ReadAnswer = await around(real, bookie, ledger, entry, flags, master_key)
        return answer

    bookies.read = read  # type: ignore[method-assign]


def noent_short(bookies: ClientBookies, _: ClientStore, sizes: Sizes) -> None:
    """One denial fewer than needed is enough for an entry to count as missing."""
    denied: dict[int, int] = {}

    async def around(real: Any, bookie: str, ledger: int, entry: int, flags: int, key: bytes | None) -> Any:
        if flags & Flags.FENCE and entry >= 0 and denied.get(entry, 0) >= max(1, sizes[1] - sizes[2]):
            raise NoSuchEntry("planted")
        try:
            return await real(bookie, ledger, entry, flags=flags, master_key=key)
        except NEGATIVE:
            denied[entry] = denied.get(entry, 0) + 1
            raise

    _reads(bookies, around)


def timeout_is_noent(bookies: ClientBookies, _: ClientStore, sizes: Sizes) -> None:
    """A timeout counts as a denial."""
    del sizes

    async def around(real: Any, bookie: str, ledger: int, entry: int, flags: int, key: bytes | None) -> Any:
        try:
            return await real(bookie, ledger, entry, flags=flags, master_key=key)
        except RequestTimeout:
            if entry == LAST_ENTRY:
                raise
            raise NoSuchEntry("planted") from None

    _reads(bookies, around)


def no_read_fence(bookies: ClientBookies, _: ClientStore, sizes: Sizes) -> None:
    """Recovery reads do not fence."""
    del sizes

    async def around(real: Any, bookie: str, ledger: int, entry: int, flags: int, key: bytes | None) -> Any:
        if entry >= 0:
            flags &= ~Flags.FENCE
        return await real(bookie, ledger, entry, flags=flags, master_key=key)

    _reads(bookies, around)


def short_fence(bookies: ClientBookies, store: ClientStore, sizes: Sizes) -> None:
    """The fence counts a bookie that did not answer, and recovery reads do not fence."""
    no_read_fence(bookies, store, sizes)
    spared: list[str] = []

    async def around(real: Any, bookie: str, ledger: int, entry: int, flags: int, key: bytes | None) -> Any:
        try:
            return await real(bookie, ledger, entry, flags=flags, master_key=key)
        except NEGATIVE:
            raise
        except BookKeeperError:
            if entry == LAST_ENTRY and flags & Flags.FENCE and (not spared or bookie in spared):
                spared.append(bookie)
                raise NoSuchEntry("planted") from None
            raise

    _reads(bookies, around)


def close_no_cas(_: ClientBookies, store: ClientStore, sizes: Sizes) -> None:
    """A ledger is closed whatever version is stored."""
    del sizes
    real = store.write

    async def write(ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        if metadata.state is LedgerState.CLOSED:
            version = (await store.read(ledger)).version
        return await real(ledger, metadata, version)

    store.write = write  # type: ignore[method-assign]


def change_no_cas(_: ClientBookies, store: ClientStore, sizes: Sizes) -> None:
    """An ensemble is changed whatever version and state are stored."""
    del sizes
    real = store.write

    async def write(ledger: int, metadata: LedgerMetadata, version: int) -> Versioned[LedgerMetadata]:
        if metadata.state is LedgerState.OPEN:
            now = await store.read(ledger)
            version = now.version
            metadata = replace(metadata, state=now.value.state, last_entry=now.value.last_entry)
        return await real(ledger, metadata, version)

    store.write = write  # type: ignore[method-assign]


@contextmanager
def keep_old_acks() -> Iterator[None]:
    """A bookie that replaces another one counts as having the other one's entries."""

    class Window(WriteWindow):
        def unack(self, index: int) -> None:
            del index

    with patch.object(writer, "WriteWindow", Window):
        yield


@contextmanager
def trust_own_acks() -> Iterator[None]:
    """The LAC rises with the entries that a recovery writes again, and the next of these entries carry it."""

    class Window(WriteWindow):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options | {"deferred": False})

    with patch.object(writer, "WriteWindow", Window):
        yield


def dying(draw: Draw) -> Draw:
    """Recoveries that die one after the other, and always a bookie that some of the clients do not reach."""
    trip = 2 * draw.base_s[1] + draw.sync_s[1]
    rng = random.Random(draw.begins_s)
    draw = replace(draw, sizes=(3, 3, 2), deferred=False, advanced=False, replicator=False).restless(rng)
    kinds = ("block", "one_way", "lossy", "cut_off")
    return replace(draw, writer="crashes", recoverers=8, dies_s=rng.choice((4, 10, 20)) * trip, kinds=kinds)


@contextmanager
def never_ask() -> Iterator[None]:
    """A writer whose bookie comes back does not check in the store that the ledger is still open."""

    async def believe(*_: object) -> None:
        """Believe that the ledger is still open, without reading its metadata."""

    with patch.object(writer, "still_open", believe):
        yield


def restless(draw: Draw) -> Draw:
    """A slow writer, recoveries in between, and bookies that crash all the time."""
    pace_s = 40 * draw.base_s[1]
    return replace(
        draw,
        entries=10,
        burst=1,
        pace_s=pace_s,
        writer="closes",
        recoverers=1,
        readers=0,
        tails=0,
        begins_s=5 * pace_s,
        faults=30,
        lasts_s=12 * pace_s,
        kinds=("crash",),
    )


@contextmanager
def force_restarted() -> Iterator[None]:
    """A bookie that was lost before it synced counts as the same when it comes back."""
    with patch.object(writer.LedgerWriter, "unforced", False):
        yield


def forced(draw: Draw) -> Draw:
    """Syncs are deferred and slow, and bookies crash between two adds and come back."""
    slow_s = 30 * draw.base_s[1]
    config = replace(draw.config, use_v2_wire_protocol=False, add_timeout_s=100 * slow_s, read_timeout_s=100 * slow_s)
    draw = replace(restless(draw), config=config, sizes=(3, 3, 3), bookies=4, sync_s=(slow_s, 2 * slow_s))
    return replace(draw, deferred=True, advanced=False, recoverers=0, faults=4, entries=4, lasts_s=4 * draw.pace_s)


def directly(draw: Draw) -> Draw:
    """Adds over direct connections."""
    trip = 2 * draw.base_s[1] + draw.sync_s[1]
    ack_quorum = draw.sizes[2]
    draw = replace(draw, sizes=(max(draw.sizes[0], ack_quorum), ack_quorum, ack_quorum), direct_s=5 * trip)
    return replace(draw, entries=12, burst=1, advanced=False, deferred=False)


def directly_restless(draw: Draw) -> Draw:
    """The same to one bookie, which crashes between two adds, while others recover the ledger."""
    draw = directly(restless(replace(draw, sizes=(1, 1, 1))))
    return replace(draw, bookies=2, faults=8, recoverers=2)


@contextmanager
def direct_unasked() -> Iterator[None]:
    """A direct connection is used that was established after the store said that the ledger is open."""
    with patch.object(DirectLinks, "old_enough", lambda _, connection, __: connection.made_s < math.inf):
        yield


def directly_to_a_quorum(draw: Draw) -> Draw:
    """Adds over direct connections that a bookie of the write set may answer later, while others recover the ledger."""
    trip = 2 * draw.base_s[1] + draw.sync_s[1]
    draw = restless(replace(draw, sizes=(3, 3, 2)))
    draw = replace(draw, direct_s=5 * trip, entries=12, burst=1, advanced=False, deferred=False)
    kinds = ("block", "one_way", "lossy", "cut_off", "pause")
    return replace(draw, bookies=4, recoverers=2, faults=8, kinds=kinds)


@contextmanager
def direct_short() -> Iterator[None]:
    """A direct add is acknowledged when one bookie less than an ack quorum has stored the entry."""

    def enough(self: DirectWriter, codes: dict[str, int]) -> bool:
        return sum(not code for code in codes.values()) >= self._quorum - 1

    def acked(self: DirectWriter, codes: dict[str, int], names: list[str]) -> int:
        return (1 << len(names)) - 1 if self.enough(codes) and not any(codes.values()) else 0

    with patch.object(DirectWriter, "enough", enough), patch.object(DirectWriter, "acked", acked):
        yield


@contextmanager
def copies_unawaited() -> Iterator[None]:
    """The metadata say that copies exist as soon as they were sent."""

    async def go_on(_: Target) -> None:
        """Continue without waiting for the outstanding writes."""

    with patch.object(Target, "finish", go_on):
        yield


def replicated(draw: Draw) -> Draw:
    """A closed ledger, bookies that go away, and a replication worker."""
    return replace(draw, entries=10, writer="closes", replicator=True, faults=5, kinds=("crash",))


@contextmanager
def second_look_alone() -> Iterator[None]:
    """Auto-recovery closes an open ledger for what its second look finds, whatever the first one found."""

    async def close(self: ReplicationWorker, claim: Claim, *_: object) -> None:
        known, lac = await self._open(claim.ledger)
        lacking = await self._checker.check(claim.ledger, known.metadata, lac)
        if any(not part.closed for part in lacking):
            await self._ledgers.recover(claim.ledger)

    with patch.object(ReplicationWorker, "_close_if_it_must_be", close):
        yield


def lagging(draw: Draw) -> Draw:
    """A healthy writer, one of whose bookies may be far away, and a replication worker that looks again and again."""
    near_s = draw.base_s[0]
    trip_s = 2 * 20 * near_s + 2 * near_s
    config = replace(draw.config, read_timeout_s=1000 * trip_s, add_timeout_s=1000 * trip_s)
    config = replace(config, connect_timeout_s=1000 * trip_s, outstanding_max=1000)
    draw = replace(draw, config=config, sizes=(3, 3, 2), bookies=3, base_s=(near_s, 20 * near_s))
    draw = replace(draw, sync_s=(near_s, 2 * near_s), store_s=near_s, faults=0, lasts_s=8 * trip_s)
    draw = replace(draw, advanced=False, deferred=False, direct_s=0.0, dies_s=0.0, replicator=True, writer="closes")
    return replace(draw, entries=60, burst=1, pace_s=trip_s / 4, recoverers=0, readers=0, tails=0, begins_s=trip_s)


@contextmanager
def no_digest() -> Iterator[None]:
    """Digests are not verified."""

    def all_good(_: Digester, run: Buffer, offsets: NDArray[np.int64], ledger: int, first: int) -> int:
        del run, ledger, first
        return len(offsets) - 1

    with patch.object(record, "verify", all_good), patch.object(record, "entry_is_valid", lambda *_: True):
        yield


PLANTED = {
    "ack_early": Planted(between=ack_early, small=("ack_early",)),
    "amnesia": Planted(bookies=("amnesia",)),
    "ack_before_sync": Planted(bookies=("ack_before_sync",)),
    "change_no_cas": Planted(between=change_no_cas),
    "close_no_cas": Planted(between=close_no_cas, small=("close_no_cas",)),
    "copies_unawaited": Planted(patch=copies_unawaited, draw=replicated),
    "direct_short": Planted(patch=direct_short, draw=directly_to_a_quorum),
    "direct_unasked": Planted(bookies=("lose_fence",), patch=direct_unasked, draw=directly_restless),
    "eio_is_noent": Planted(bookies=("eio_is_noent",)),
    "force_restarted": Planted(patch=force_restarted, draw=forced),
    "ignore_fence": Planted(bookies=("ignore_fence",)),
    "keep_old_acks": Planted(patch=keep_old_acks, small=("keep_old_acks",)),
    "lose_fence": Planted(bookies=("lose_fence",), patch=never_ask, draw=restless),
    "no_digest": Planted(patch=no_digest),
    "no_read_fence": Planted(between=no_read_fence, small=("no_read_fence",)),
    "no_writeback": Planted(between=no_writeback, small=("no_writeback",)),
    "noent_short": Planted(between=noent_short, small=("noent_short",)),
    "second_look_alone": Planted(patch=second_look_alone, draw=lagging),
    "short_fence": Planted(between=short_fence, small=("short_fence", "no_read_fence")),
    "trust_own_acks": Planted(patch=trust_own_acks, draw=dying),
    "timeout_is_noent": Planted(between=timeout_is_noent, small=("timeout_is_noent",)),
}
