"""Repairs the entries of one ledger in this bookie while it serves. Thread `repair`.

Intact copies come from its own caches and logs, or from the other bookies of the write set. They are written like
recovery adds, and read again.
"""

import contextlib
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client import DigestType
from bookie.errors import BookKeeperError, DigestMismatch, NoSuchLedger, UnauthorizedAccess
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie.repair.copying import copy_part, digest_of
from bookie.repair.expected import expected_entries, in_last_ensemble, parts_holding
from bookie.repair.peers import Peers
from bookie.server.storage.stored import Stored

__all__ = ["Mended", "Mending", "Place"]

NO_REPLICA = "no other bookie has a copy, because the ledger has one replica"
log = logging.getLogger(__name__)


class Place(Protocol):
    """The place in an entry log where a record was found."""

    @property
    def directory(self) -> str: ...
    @property
    def log_id(self) -> int: ...
    @property
    def offset(self) -> int: ...


@dataclass(slots=True)
class Mended:
    """The result for the entries of one ledger, in ascending order of id."""

    good: list[int] = field(default_factory=list)
    """Entries that needed no repair: they can be read with a correct digest, or do not belong here."""
    repaired: list[int] = field(default_factory=list)
    lost: dict[int, str] = field(default_factory=dict)
    """Entries of which no intact copy was found, and why."""
    bytes: int = 0


class _Durable:
    """The pending result of an add to the bookie's own store."""

    def __init__(self, stored: Stored, ledger: int, group: int) -> None:
        self._stored, self._ledger, self._group = stored, ledger, group

    def result(self) -> None:
        """Return when the add is durable. Raises BookKeeperError."""
        self._stored.await_durable(self._ledger, self._group)


class OwnStore:
    """The bookie's own store as a destination of copies, without a port or authentication, even in quarantine."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    def add_stored_async(self, stored: Buffer, master_key: bytes, *, flags: int = 0) -> _Durable:  # noqa: ARG002
        """Store an entry like `BookieChannel.add_stored_async` for a recovery add."""
        ledger = int.from_bytes(memoryview(stored)[:8], "big")
        return _Durable(self._stored, ledger, self._stored.add_again(stored, master_key))


class Mending:
    """The repair of the entries of one ledger. `peers` has channels to the other bookies."""

    def __init__(self, bookie_id: str, stored: Stored, ledger: int, metadata: LedgerMetadata, peers: Peers) -> None:
        self._bookie_id = bookie_id
        self._stored = stored
        self._ledger = ledger
        self._metadata = metadata
        self._peers = peers
        self._digest = digest_of(metadata)
        self._target = OwnStore(stored)

    def mend(self, entries: Collection[int], places: Mapping[int, Place], reads: Collection[int] = ()) -> Mended:
        """Store intact copies of these entries here. Those in `reads` may be intact by now, because only a read
        failed.

        `places` says where records were found that are missing from the index. Raises BookKeeperError if the bookie's
        own store refuses a copy.
        """
        done = Mended()
        wanted: list[int] = []
        for entry in sorted(entries):
            copy = self._own_copy(entry, places.get(entry))
            if copy is None:
                wanted.append(entry)
            elif entry in reads:
                done.good.append(entry)
            else:
                self._add(copy)
                done.repaired.append(entry)
                done.bytes += len(copy)
        if wanted:
            self._copy(np.array(wanted, np.int64), done)
        self._announce_end(done)
        return done

    def complete(self) -> Mended | None:
        """Copy expected entries that are missing or damaged here. Return None if the end of the ledger is unknown."""
        metadata = self._metadata
        if metadata.state is not LedgerState.CLOSED and in_last_ensemble(metadata, self._bookie_id):
            return None
        here = np.array(self._ranges(), np.int64).reshape(-1, 2)
        done = Mended()
        for part in expected_entries(metadata, self._bookie_id):
            at = np.searchsorted(here[:, 0], part.entries, "right") - 1
            there = (at >= 0) & (part.entries <= here[at, 1]) if len(here) else np.zeros(len(part.entries), np.bool_)
            for entry in part.entries[there].tolist():
                if self._own_copy(entry, None) is None:
                    there[np.searchsorted(part.entries, entry)] = False
            if not there.all():
                self._copy(part.entries[~there], done)
        self._announce_end(done)
        return done

    def _announce_end(self, done: Mended) -> None:
        """Close the entry log that a ledger of its own got for the copies, unless its writer may still write here."""
        metadata = self._metadata
        if done.repaired and (metadata.state is LedgerState.CLOSED or not in_last_ensemble(metadata, self._bookie_id)):
            self._stored.write_close(self._ledger, self._digest.master_key)

    def _ranges(self) -> list[tuple[int, int]]:
        try:
            return self._stored.ranges(self._ledger)
        except (NoSuchLedger, OSError):
            return []  # copying an entry that exists does no harm

    def _own_copy(self, entry: int, place: Place | None) -> bytes | None:
        """Return a copy with a correct digest from the caches, a log by the index, or the place where it was found."""
        if self._digest.type is DigestType.DUMMY:
            return None  # without a digest, nothing tells whether a copy is intact
        for found in self._copies(entry, place):
            try:
                self._digest.open(found, self._ledger, entry)
            except DigestMismatch:
                continue
            return found
        return None

    def _copies(self, entry: int, place: Place | None) -> Iterable[bytes]:
        with contextlib.suppress(BookKeeperError):
            yield self._stored.read(self._ledger, entry, 1, 0)[0]
        if place is not None and place.log_id >= 0 and place.offset >= 0:
            record = self._stored.record_at(place.directory, place.log_id, place.offset)
            if record is not None:
                yield record

    def _add(self, copy: bytes) -> None:
        self._target.add_stored_async(copy, self._digest.master_key).result()

    def _copy(self, entries: NDArray[np.int64], done: Mended) -> None:
        """Copy entries from the other bookies. Entries that do not belong here count as good."""
        ours: set[int] = set()
        for part, missing in parts_holding(self._metadata, self._bookie_id, entries):
            ours.update(missing.tolist())
            if not any(part.others):
                done.lost.update(dict.fromkeys(missing.tolist(), NO_REPLICA))
                continue
            try:
                copied = copy_part(self._ledger, self._digest, part, missing, peers=self._peers, target=self._target)
            except UnauthorizedAccess as error:
                why = f"this bookie has another master key for this ledger: {error}"
                done.lost.update(dict.fromkeys(missing.tolist(), why))
                continue
            why = "; ".join(f"{source}: {reason}" for source, reason in copied.reasons.items()) or "no replica has it"
            done.lost.update(dict.fromkeys(copied.lost, why))
            done.repaired += sorted(set(missing.tolist()) - set(copied.lost))
            done.bytes += copied.bytes
        done.good += sorted(set(entries.tolist()) - ours)
