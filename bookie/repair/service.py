"""Repair as a service of the bookie: damage that the scrub or a reader finds is repaired while the bookie serves.

It is an entry point of the group `bookie.services`. One thread `repair` does the work; the scrub and failed reads
queue entries from their own threads. Entries that cannot be repaired now are logged, counted, and tried again.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bookie.errors import BookKeeperError, NoSuchLedgerMetadata
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.repair.expected import parts_holding
from bookie.repair.mending import Mended, Mending
from bookie.repair.peers import Connect, Peers, connect_by_metadata
from bookie.server.control import Control
from bookie.storage.scrub.findings import Finding, Kind

__all__ = ["open_service", "Repairs"]

WAITING_MAX = 100_000
"""The most entries that wait for repair. At the limit the scrub waits, and failed reads are left to the scrub."""
AGAIN_S = 60.0
"""The pause before an entry that could not be repaired is tried again; it doubles each time, up to AGAIN_MOST_S."""
AGAIN_MOST_S = 3600.0
BUSY_S = 2.0
"""The pause while the index of a ledger cannot be read; the thread `index-repair` repairs that."""
MENDED_HERE = frozenset({"unreadable runs in the location index", "a bad record in an entry log"})
"""Reasons of a quarantine that ends when all entries of the ledger are present again."""
COUNTED = (Kind.DIGEST, Kind.PLACE, Kind.ORPHAN, Kind.READ)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Wanted:
    """The entries of one ledger that are to be repaired."""

    findings: dict[int, Finding] = field(default_factory=dict)
    """The first finding of each entry."""
    tries: int = 0


class Repairs:
    """The repair service. Call `start`, then `stop`, which is idempotent."""

    def __init__(self, control: Control, connect: Connect) -> None:
        self._control = control
        self._connect = connect
        self._thread = threading.Thread(target=self._run, name="repair", daemon=True)
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._stopping = False
        self._waiting: OrderedDict[int, _Wanted] = OrderedDict()
        self._count = 0
        # Of thread `repair`, read by anybody:
        self._again: dict[int, tuple[float, _Wanted]] = {}
        self._lost: dict[tuple[int, int], Kind] = {}
        self._repaired = dict.fromkeys(COUNTED, 0)
        self._bytes = self._lifted = self._failed = 0
        self._looks: dict[int, tuple[float, float]] = {}
        self._look_at = 0.0

    def start(self) -> None:
        """Start the thread, and follow new findings from now on."""
        self._thread.start()
        self._control.scrub.follow(self.on_finding)
        self._control.stored.follow_failed_reads(self.on_failed_read)

    def stop(self) -> None:
        """Stop after the current ledger. Idempotent."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def stats(self) -> Mapping[str, int | float]:
        """Return counters and gauges."""
        lost = list(self._lost.values())
        return {
            "repair_waiting_now": self._count + sum(len(wanted.findings) for _, wanted in list(self._again.values())),
            "repair_repaired": sum(self._repaired.values()),
            "repair_unrepairable_now": len(lost),
            "repair_bytes": self._bytes,
            "repair_quarantines_lifted": self._lifted,
            "repair_failed_rounds": self._failed,
            **{f"repair_repaired_{kind.value}": count for kind, count in self._repaired.items()},
            **{f"repair_unrepairable_{kind.value}_now": lost.count(kind) for kind in COUNTED},
        }

    def families(self) -> tuple[()]:
        """Return nothing, since all metrics of repair are in `stats`."""
        return ()

    # Queueing entries. Any thread.

    def on_finding(self, finding: Finding) -> None:
        """Queue a finding of the scrub, whose thread waits while the queue is full."""
        if not finding.is_entry:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._count < WAITING_MAX)
            self._put(finding)

    def on_failed_read(self, directory: str, ledger: int, entry: int) -> None:
        """Queue an entry that a client could not read."""
        with self._changed:
            if self._count < WAITING_MAX and entry >= 0:
                self._put(Finding(kind=Kind.READ, directory=directory, ledger=ledger, entry=entry))

    def _put(self, finding: Finding) -> None:
        wanted = self._waiting.setdefault(finding.ledger, _Wanted())
        before = wanted.findings.get(finding.entry)
        if before is None:
            self._count += 1
        if before is None or before.kind is Kind.READ:
            wanted.findings[finding.entry] = finding
        self._changed.notify_all()

    # The body of the thread.

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            ledger, wanted = taken
            try:
                if wanted is None:
                    self._look_at_quarantine(ledger)
                else:
                    self._mend(ledger, wanted)
            except (BookKeeperError, OSError) as error:
                self._failed += 1
                log.warning("a repair failed and will be retried", extra={"ledger": ledger, "error": error})
                if wanted is not None:
                    self._later(ledger, wanted)

    def _take(self) -> tuple[int, _Wanted | None] | None:
        """Return the next ledger with the entries to repair, or with None if it is one in quarantine to examine.
        Return None when the bookie stops.
        """
        while True:
            now = time.monotonic()
            with self._changed:
                if self._stopping:
                    return None
                for ledger in [ledger for ledger, (at, _) in self._again.items() if at <= now]:
                    _, old = self._again.pop(ledger)
                    fresh = self._waiting.setdefault(ledger, _Wanted())
                    self._count += len(old.findings.keys() - fresh.findings.keys())
                    fresh.findings = {**old.findings, **fresh.findings}
                    fresh.tries = old.tries
                if self._waiting:
                    ledger, wanted = self._waiting.popitem(last=False)
                    self._count -= len(wanted.findings)
                    self._changed.notify_all()
                    return ledger, wanted
            due = self._due_quarantine(now)
            if due is not None:
                return due, None
            with self._changed:
                until = min([at for at, _ in self._again.values()] + [self._look_at])
                if not self._waiting and not self._stopping:
                    self._changed.wait(max(until - time.monotonic(), 0.05))

    def _metadata(self, ledger: int) -> LedgerMetadata | None:
        """Return the ledger's metadata, or None if it was deleted, so that garbage collection will remove it."""
        try:
            return self._control.metadata.ledgers.read(ledger).value  # type: ignore[no-any-return]
        except NoSuchLedgerMetadata:
            return None

    def _mend(self, ledger: int, wanted: _Wanted) -> None:
        metadata = self._metadata(ledger)
        if metadata is None:
            self._forget(ledger, wanted.findings)
            return
        stored, entries = self._control.stored, wanted.findings
        try:
            for entry in entries:
                stored.places(ledger, entry, 1)
        except OSError:
            self._later(ledger, wanted, BUSY_S)  # entries written now could not be indexed either
            return
        orphans = {entry: one for entry, one in entries.items() if one.kind is Kind.ORPHAN}
        # The index lost them: until they are in it again, the bookie must not deny entries that it does not know.
        ours = parts_holding(metadata, self._control.bookie_id, np.array(sorted(orphans), np.int64))
        doubted = any(ours) and stored.quarantine(ledger, "a bad record in an entry log")
        reads = {entry for entry, one in entries.items() if one.kind is Kind.READ}
        with Peers(self._connect) as peers:
            mending = Mending(self._control.bookie_id, stored, ledger, metadata, peers)
            done = mending.mend(entries.keys(), orphans, reads)
        self._note(ledger, entries, done)
        if done.lost:
            self._later(ledger, _Wanted({entry: entries[entry] for entry in done.lost}, wanted.tries))
        elif doubted:
            stored.lift(ledger)

    def _note(self, ledger: int, entries: Mapping[int, Finding], done: Mended) -> None:
        for entry in done.repaired:
            self._repaired[entries[entry].kind] += 1
        self._bytes += done.bytes
        self._forget(ledger, [*done.repaired, *done.good])
        if done.repaired:
            facts = {"ledger": ledger, "entries": len(done.repaired), "first": done.repaired[0], "bytes": done.bytes}
            log.warning("entries were repaired", extra=facts)
        new = {entry: why for entry, why in done.lost.items() if (ledger, entry) not in self._lost}
        for entry in new:
            self._lost[ledger, entry] = entries[entry].kind
        if new:
            entry, why = next(iter(new.items()))
            facts = {"ledger": ledger, "entries": len(new), "first": entry}
            log.error("entries cannot be repaired now and will be tried again", extra={**facts, "why": why})

    def _forget(self, ledger: int, entries: Mapping[int, Finding] | list[int]) -> None:
        for entry in entries:
            self._lost.pop((ledger, entry), None)

    def _later(self, ledger: int, wanted: _Wanted, pause_s: float = 0.0) -> None:
        pause_s = pause_s or min(AGAIN_S * 2**wanted.tries, AGAIN_MOST_S)
        wanted.tries += 1
        self._again[ledger] = time.monotonic() + pause_s, wanted

    def _due_quarantine(self, now: float) -> int | None:
        """Return a ledger that damage put into quarantine, and that was not examined for a while."""
        if now < self._look_at:
            return None
        try:
            found = [one.ledger for one in self._control.stored.quarantined() if MENDED_HERE.issuperset(one.reasons)]
        except BookKeeperError:
            found = []  # the bookie is starting or stopping
        self._looks = {ledger: look for ledger, look in self._looks.items() if ledger in found}
        for ledger in found:
            if self._looks.get(ledger, (0.0, 0.0))[0] <= now:
                return ledger
        self._look_at = now + BUSY_S
        return None

    def _look_at_quarantine(self, ledger: int) -> None:
        """Lift the quarantine of a ledger once all entries that the metadata expects here are present."""
        _, pause_s = self._looks.get(ledger, (0.0, AGAIN_S / 8))
        self._looks[ledger] = time.monotonic() + pause_s, min(2 * pause_s, AGAIN_MOST_S)
        metadata = self._metadata(ledger)
        if metadata is None:
            return
        with Peers(self._connect) as peers:
            done = Mending(self._control.bookie_id, self._control.stored, ledger, metadata, peers).complete()
        if done is None:
            return
        self._repaired[Kind.PLACE] += len(done.repaired)
        self._bytes += done.bytes
        facts = {"ledger": ledger, "copied": len(done.repaired)}
        if done.lost:
            entry, why = next(iter(done.lost.items()))
            facts |= {"missing": len(done.lost), "first": entry}
            log.error("a ledger stays in quarantine", extra={**facts, "why": why})
        elif self._control.stored.lift(ledger):
            self._lifted += 1
            log.warning("a ledger is complete again, and its quarantine was lifted", extra=facts)


def open_service(control: Control) -> Repairs:
    """Return the repair service of this bookie. Raises ConfigurationError."""
    from bookie.client.replication.service import split  # noqa: PLC0415 - most bookies have nothing to repair
    from bookie.client.wire.tls import security_of  # noqa: PLC0415

    config, _ = split(control.client_keys)
    return Repairs(control, connect_by_metadata(control.metadata, security_of(config)))
