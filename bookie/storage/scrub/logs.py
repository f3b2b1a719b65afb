"""The scrub of one entry log: its records, their digests and ids, its ledgers map, and the index in both directions.
Thread `scrub`.

The log is read once, in order. Each record is looked up in the index: a record that the index points at must have the
digest of its ledger, and an entry of a ledger that is known here must be in the index, here or elsewhere. Where the
scan finds something odd, or sees less than the index has in this log, the index leads instead: every record that the
index has in this log is read by itself.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.pace import Pacer
from bookie._fast.entrylog.map import read_map
from bookie._fast.entrylog.rows import LogRows
from bookie._fast.store.gc.scrub import DISAGREES, LIVE, ORPHAN, UNKNOWN, Pointed, Scrubber
from bookie._fast.wire import record
from bookie._fast.wire.digest import Digester
from bookie._fast.wire.record_rows import Rows, RowSheet
from bookie.storage import descriptors
from bookie.storage.scrub.digests import Digests
from bookie.storage.scrub.findings import Finding, Kind
from bookie.storage.tools.check_logs import header_of, map_problem

__all__ = ["LogScrub", "LogScrubbed"]

ROWS = 4096
DUMMY = 4
ENTRY = 0
LENGTH_PREFIX = 4
WINDOW_BYTES = 64 << 20
MAP_LEDGERS_MAX = 1 << 16
"""For logs with more ledgers than this, the map is not compared, and digests are not fetched before the log is read."""


@dataclass(slots=True)
class LogScrubbed:
    """The result for one log. `live` has the bytes of records that the index points at, as the scan saw them."""

    bytes: int = 0
    records: int = 0
    verified: int = 0
    live: int = 0
    settled: bool = True
    """False if `live` is still to be compared with what the index has in this log."""
    stopped: bool = False
    findings: list[Finding] = field(default_factory=list)


class LogScrub:
    """The scrub of the logs of one ledger directory. `progress` is called with the bytes just read."""

    def __init__(
        self, scrubber: Scrubber, digests: Digests, pace: Pacer, progress: Callable[[int], None] = lambda _: None
    ) -> None:
        self.scrubber = scrubber
        self._digests = digests
        self._pace = pace
        self._progress = progress

    def path(self, log_id: int) -> Path:
        """Return the path of a log."""
        return Path(self.scrubber.directory) / f"{log_id:x}.log"

    def scrub(self, log_id: int) -> LogScrubbed:
        """Read one log. A log that is gone has an empty result."""
        return _Scan(self, log_id).run()

    def by_index(self, log_id: int, first: int = 0) -> list[Finding]:
        """Read every record that the index has in a log from byte `first` on. Raises OSError if the index cannot be
        read, or the process has no file descriptor left.
        """
        path = self.path(log_id)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            descriptors.pass_on_used_up(error)
            return [self._about(log_id, row, f"the log cannot be opened: {error.strerror}")
                    for part in self._parts(log_id, 0, 0) for row in _rows(part)]  # fmt: skip
        try:
            found = []
            for part in self._parts(log_id, first, os.fstat(fd).st_size):
                for row in _rows(part):
                    if not self._pace.take(row[3] + LENGTH_PREFIX):
                        return []
                    if why := self._why_bad(fd, row):
                        found.append(self._about(log_id, row, why))
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
        return self._still(log_id, found)

    def ask_digests(self, ledgers: NDArray[np.int64]) -> list[Digester | None]:
        """Return the digester of each of these ledgers."""
        return self._digests.of(ledgers.tolist())

    @property
    def digests(self) -> Digests:
        """The digesters of the ledgers."""
        return self._digests

    @property
    def pace(self) -> Pacer:
        """The rate limit of reading."""
        return self._pace

    def count_read(self, count: int) -> None:
        """Report that `count` more bytes were read."""
        self._progress(count)

    def _parts(self, log_id: int, first: int, size: int) -> Iterator[Pointed]:
        """Yield what the index has in a log, in stretches; the last one reaches beyond the end of the file."""
        while True:
            end = first + WINDOW_BYTES if first + WINDOW_BYTES < size else 1 << 63
            part = self.scrubber.pointed(log_id, first, end)
            while part.more:
                end = first + (min(end, first + WINDOW_BYTES) - first) // 2
                part = self.scrubber.pointed(log_id, first, end)
            yield part
            first = end
            if end == 1 << 63:
                return

    def _why_bad(self, fd: int, row: tuple[int, int, int, int]) -> str:
        """Return what is wrong with one record; empty if nothing is."""
        ledger, entry, offset, length = row
        try:
            data = os.pread(fd, LENGTH_PREFIX + length, offset)
        except OSError as error:
            return f"the disk cannot read it: {error.strerror}"
        if len(data) < LENGTH_PREFIX + length:
            return "the log ends before the end of the record"
        head = tuple(int.from_bytes(data[at:end], "big") for at, end in ((0, 4), (4, 12), (12, 20)))
        if head != (length, ledger, entry):
            return "there is no such record at this place"
        digester = self._digests(ledger)
        if digester is not None and not record.entry_is_valid(digester, data[LENGTH_PREFIX:], ledger, entry):
            return "its digest is wrong"
        return ""

    def _about(self, log_id: int, row: tuple[int, int, int, int], why: str) -> Finding:
        ledger, entry, offset, _ = row
        kind = Kind.DIGEST if why.startswith("its digest") else Kind.PLACE
        return Finding(kind=kind, directory=self.scrubber.directory, log_id=log_id, ledger=ledger, entry=entry,
                       offset=offset, why=why)  # fmt: skip

    def _still(self, log_id: int, found: list[Finding]) -> list[Finding]:
        """Return findings that the index still has there; other entries were rewritten, moved or deleted meanwhile."""
        if not found:
            return []
        ids = np.array([(one.ledger, one.entry, one.offset) for one in found], np.int64)
        now = self.scrubber.judge(log_id, ids[:, 0], ids[:, 1], ids[:, 2], np.zeros(len(found), np.uint32))
        return [one for one, verdict in zip(found, now.tolist(), strict=True) if verdict in (LIVE, DISAGREES)]


def _rows(part: Pointed) -> Iterator[tuple[int, int, int, int]]:
    columns = (part.ledger, part.entry, part.offset, part.length)
    return zip(*(column.tolist() for column in columns), strict=True)


class _Scan:
    """The scan of one log from its first byte to its last."""

    def __init__(self, of: LogScrub, log_id: int) -> None:
        self._of = of
        self._scrubber = of.scrubber
        self._log_id = log_id
        self._path = of.path(log_id)
        self._open = of.scrubber.is_open(log_id)
        self._sums: dict[int, int] | None = {}
        self._odd = False
        self._index_readable = True
        self.done = LogScrubbed()

    def run(self) -> LogScrubbed:
        done = self.done
        end = 0
        try:
            rows = self._opened()
            try:
                self._read(rows)
                done.stopped, torn, end = rows.stopped, rows.torn, rows.position
            finally:
                rows.close()
        except FileNotFoundError:
            return done
        except (OSError, ValueError) as error:
            descriptors.pass_on_used_up(error)
            self._find(Kind.UNREADABLE, str(error))
            torn = self._odd = True
        if done.stopped:
            return done
        if torn and not self._open and end:
            self._find(Kind.TORN, f"the bytes at offset {end} are not a record", offset=end)
        if torn or self._odd:
            self._lead_by_index(0 if self._odd else end)
        elif not self._open:
            self._compare_map()
            done.settled = False
        return done

    def _opened(self) -> LogRows:
        sheet = RowSheet([Digester(DUMMY, bytes(20))], digests=True, rows_max=ROWS, digest_of=self._of.digests)
        ledger_map = read_map(self._path)
        if ledger_map is not None and len(ledger_map.ledgers) <= MAP_LEDGERS_MAX:
            sheet.know(ledger_map.ledgers.tolist(), self._of.ask_digests(ledger_map.ledgers))
        return LogRows(self._path, sheet, pace=self._of.pace)

    def _read(self, rows: LogRows) -> None:
        before = 0
        while (part := rows.read()) is not None:
            self._judge(part)
            self._of.count_read(rows.position - before)
            self.done.bytes = before = rows.position

    def _judge(self, rows: Rows) -> None:
        entries = rows.kind == ENTRY
        ledger, entry, size = rows.ledger[entries], rows.entry[entries], rows.size[entries].astype(np.int64)
        if not len(ledger):
            return
        offset, ok = rows.position[entries] - LENGTH_PREFIX, rows.ok[entries] != 0
        verdict = self._scrubber.judge(self._log_id, ledger, entry, offset, size)
        live = verdict == LIVE
        self.done.records += len(ledger)
        self.done.live += int((size[live] + LENGTH_PREFIX).sum())
        self._add_up(ledger, size)
        self._odd = self._odd or bool((verdict == DISAGREES).any())
        if (verdict == UNKNOWN).any() and self._index_readable:
            self._index_readable = False
            self._find(Kind.INDEX, "the index cannot tell where entries of this log are")
        for i in np.flatnonzero(~ok & (verdict != UNKNOWN)).tolist():
            if self._of.digests(int(ledger[i])) is None:
                continue
            if live[i]:
                self._find(Kind.DIGEST, "its digest is wrong", int(ledger[i]), int(entry[i]), int(offset[i]))
            else:
                self._odd = True  # damaged ids may hide the entry that was here
                verdict[i] = UNKNOWN
        if not self._open:
            for i in np.flatnonzero(verdict == ORPHAN).tolist():
                why = "it is missing from the index"
                self._find(Kind.ORPHAN, why, int(ledger[i]), int(entry[i]), int(offset[i]))

    def _add_up(self, ledger: NDArray[np.int64], size: NDArray[np.int64]) -> None:
        """Add up the bytes by ledger, to compare them with the map, and count the records whose digest was checked."""
        ids, at = np.unique(ledger, return_inverse=True)
        known = np.array([one is not None for one in self._of.ask_digests(ids)], np.bool_)
        self.done.verified += int(known[at].sum())
        if self._sums is None:
            return
        sums = np.zeros(len(ids), np.int64)
        np.add.at(sums, at, size + LENGTH_PREFIX)
        for one, count in zip(ids.tolist(), sums.tolist(), strict=True):
            self._sums[one] = self._sums.get(one, 0) + count
        if len(self._sums) > MAP_LEDGERS_MAX:
            self._sums = None

    def _compare_map(self) -> None:
        if self._sums is None:
            return
        try:
            header = header_of(self._path)
            why = map_problem(self._path, header, self._sums) if header[0] else ""
        except FileNotFoundError:
            return
        except OSError as error:
            descriptors.pass_on_used_up(error)
            why = f"it cannot be read: {error.strerror}"
        if why:
            self._find(Kind.MAP, why)

    def _lead_by_index(self, first: int) -> None:
        try:
            found = self._of.by_index(self._log_id, first)
        except OSError as error:
            descriptors.pass_on_used_up(error)
            self._find(Kind.INDEX, str(error))
            return
        known = {(one.ledger, one.entry) for one in self.done.findings}
        self.done.findings += [one for one in found if (one.ledger, one.entry) not in known]

    def _find(self, kind: Kind, why: str, ledger: int = -1, entry: int = -1, offset: int = -1) -> None:
        self.done.findings.append(
            Finding(kind=kind, directory=self._scrubber.directory, log_id=self._log_id, ledger=ledger, entry=entry,
                    offset=offset, why=why)
        )  # fmt: skip
