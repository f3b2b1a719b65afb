"""The first half of a cycle: find the ledgers that were deleted, or that are stored elsewhere, and delete them here.

The order of steps is essential. The local ids are taken before the listing, so a ledger created meanwhile is not
considered. The listing is complete before the first ledger is considered. Each candidate is then confirmed by a
separate read. The cluster's instance id is compared with that of this bookie's cookie before the listing and again
before the deletion. A checkpoint precedes the deletion, so that no replay restores a ledger. Any failure on the way
ends the cycle, and nothing is deleted.

Thread `garbage`, which deletes ledgers in all directories at the same time (`everywhere`).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bookie.errors import BookKeeperError
from bookie.plural import counted
from bookie.storage.garbage.contracts import Ledgers, Metadata, Standing
from bookie.storage.garbage.counters import Counters
from bookie.storage.garbage.decision import Ids, candidates, too_many, whole_listing
from bookie.storage.garbage.empty_list import EmptyList
from bookie.storage.garbage.everywhere import everywhere
from bookie.storage.garbage.settings import GarbageSettings
from bookie.storage.garbage.steps import step

__all__ = ["Alarm", "LedgerCollector", "Local"]

log = logging.getLogger(__name__)

DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Alarm:
    """The reason why no ledger is deleted until an operator confirms it."""

    text: str
    since_ms: int


class ForeignCluster(BookKeeperError):
    """The metadata store holds a cluster other than the one that this bookie's data belongs to."""

    retriable = True


class Stopped(Exception):
    """The bookie is stopping."""


@dataclass(frozen=True, slots=True)
class Local:
    """The ledgers of all directories at one moment."""

    by_directory: tuple[Ids, ...]
    all: Ids = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "all", np.sort(np.concatenate(self.by_directory)))


class LedgerCollector:
    """Deletes ledgers; call `run` once per cycle. `alarm` is set when a deletion needs an operator's confirmation."""

    def __init__(
        self,
        settings: GarbageSettings,
        directories: Sequence[Ledgers],
        metadata: Metadata,
        own_instance: Callable[[], str | None],
        checkpoint: Callable[[], bool],
        counters: Counters,
        stopping: threading.Event,
    ) -> None:
        self._settings = settings
        self._directories = directories
        self._metadata = metadata
        self._own_instance = own_instance
        self._checkpoint = checkpoint
        self._counters = counters
        self._stopping = stopping
        self._elsewhere_before: set[int] = set()
        self._empty = EmptyList(settings, metadata, own_instance)
        self.alarm: Alarm | None = None
        self.doing = ""

    def run(self, *, over_replicated: bool, mass_deletion: bool) -> bool:
        """Delete ledgers that no longer exist and, with `over_replicated`, those stored elsewhere. Return False if
        nothing was learnt or done.

        `mass_deletion` is an operator's confirmation that any number of ledgers may be deleted; it clears the alarm.
        """
        if mass_deletion:
            self.alarm = None
        if self.alarm is not None:
            log.error("no ledger is deleted until an operator confirms it", extra={"alarm": self.alarm.text})
            return False
        try:
            self._run(over_replicated=over_replicated, mass_deletion=mass_deletion)
            self._drop_old_fences()
        except Stopped:
            return False
        except Exception as error:  # an exception of a metadata driver ends the deletion, not the bookie
            self._empty.forget()
            self._counters.failed_cycles += 1
            log.warning("garbage collection of ledgers ended early; no more ledgers are deleted", exc_info=error)
            return False
        finally:
            self.doing = ""
        return True

    def _run(self, *, over_replicated: bool, mass_deletion: bool) -> None:
        self._require_own_cluster()
        self.doing = "listing ledgers"
        local = Local(tuple(directory.ledger_ids() for directory in self._directories))
        for counters, ids in zip(self._counters.directories, local.by_directory, strict=True):
            counters.ledgers = ids.size
        step("local ledgers listed")
        if not local.all.size:
            return
        listed = whole_listing(self._listing())
        if listed.size:
            self._empty.forget()
        elif not mass_deletion:
            if not self._empty.is_believed(local.all.size, self._listing):
                return
            mass_deletion = True
        going = candidates(local.all, listed)
        if self._refused(going.size, local.all.size, len(listed), mass_deletion=mass_deletion):
            return
        gone = self._verified(going, Standing.ABSENT)
        step("ledgers verified")
        if gone.size:
            self._require_own_cluster()
            self._checkpointed()
            self._delete(gone, local)
            log.info("ledgers deleted", extra={"ledgers": gone.size, "total": local.all.size})
        if over_replicated:
            kept = np.setdiff1d(local.all, going, assume_unique=True)
            self._delete_over_replicated(kept, local, mass_deletion=mass_deletion)

    def _drop_old_fences(self) -> None:
        for directory in self._directories:
            directory.drop_fences(self._settings.fence_kept_ms)

    def _refused(self, going: int, local: int, listed: int, *, mass_deletion: bool) -> bool:
        """Raise the alarm if too many ledgers would be deleted, and return whether it was raised."""
        if mass_deletion or not too_many(going, local, self._settings.delete_share_max):
            return False
        text = (
            f"{going} of {local} ledgers here are not among the {listed} ledgers of the metadata store, which is more"
            f" than gcDeleteShareMax={self._settings.delete_share_max:g} allows: check metadataServiceUri and the"
            " metadata store; if they were deleted on purpose, force a collection with mass deletion"
        )
        self.alarm = Alarm(text, time.time_ns() // 1_000_000)
        log.error("garbage collection is stopped, and no ledger is deleted", extra={"alarm": text})
        return True

    def _verified(self, ledgers: Ids, wanted: Standing) -> Ids:
        """Return those of `ledgers` for which a separate read says `wanted`."""
        found = []
        begun = time.monotonic()
        for done, ledger in enumerate(ledgers.tolist()):
            ahead_s = done / self._settings.metadata_reads_per_s - (time.monotonic() - begun)
            if self._stopping.wait(ahead_s) if ahead_s > 0 else self._stopping.is_set():
                raise Stopped
            self.doing = f"verifying ledgers, {done} of {ledgers.size}"
            standing = self._metadata.standing(ledger)
            if standing is wanted:
                found.append(ledger)
            elif wanted is Standing.ABSENT:
                log.warning(
                    "a ledger exists that the metadata store did not list",
                    extra={"ledger": ledger, "standing": standing.value},
                )
        return np.array(found, np.int64)

    def _delete_over_replicated(self, kept: Ids, local: Local, *, mass_deletion: bool) -> None:
        """Delete ledgers that both this check and the previous one found closed and not on this bookie.

        Two checks are needed because copying by hand takes no lock: it writes here first, and updates the metadata
        store when it is done.
        """
        elsewhere = self._verified(kept, Standing.ELSEWHERE)
        seen_twice = np.array([ledger for ledger in elsewhere.tolist() if ledger in self._elsewhere_before], np.int64)
        self._elsewhere_before = set(elsewhere.tolist())
        here = local.all.size
        if not seen_twice.size or self._refused(seen_twice.size, here, kept.size, mass_deletion=mass_deletion):
            return
        self._require_own_cluster()
        self._checkpointed()
        for ledger in seen_twice:
            with self._metadata.replication_lock(int(ledger)) as ours:
                if ours and self._verified(np.array([ledger], np.int64), Standing.ELSEWHERE).size:
                    self._delete(np.array([ledger], np.int64), local)
                    self._counters.over_replicated += 1
                    self._elsewhere_before.discard(int(ledger))  # if it is copied here again, two checks are due again
        log.info("over-replicated ledgers deleted", extra={"ledgers": seen_twice.size})

    def _delete(self, ledgers: Ids, local: Local) -> None:
        self.doing = f"deleting {counted(ledgers.size, 'ledger')}"

        def delete(number: int) -> None:
            mine = np.intersect1d(ledgers, local.by_directory[number], assume_unique=True)
            for at in range(0, mine.size, DELETED_AT_ONCE):
                if self._stopping.is_set():
                    raise Stopped
                some = mine[at : at + DELETED_AT_ONCE]
                self._directories[number].delete_ledgers(some)
                self._counters.directories[number].deleted_ledgers += some.size
                step("ledgers deleted")

        everywhere(len(self._directories), delete)

    def _checkpointed(self) -> None:
        """Take a checkpoint. On a full disk ledgers are deleted without one, because the disk would stay full
        otherwise; after a crash the next cycle finds them again.
        """
        self.doing = "checkpoint before deletion"
        if not self._checkpoint():
            log.warning("ledgers are deleted without a checkpoint, because the disk is full")
        step("checkpointed")

    def _require_own_cluster(self) -> None:
        ours, theirs = self._own_instance(), self._metadata.instance_id()
        if ours != theirs:
            raise ForeignCluster(
                f"the metadata store holds the cluster with instance id {theirs}, but this bookie's cookie says {ours}:"
                " correct metadataServiceUri"
            )

    def _listing(self) -> Iterable[Sequence[int]]:
        """Yield the ledgers of the metadata store, until the bookie stops."""
        for piece in self._metadata.ranges():
            if self._stopping.is_set():
                raise Stopped
            yield piece
