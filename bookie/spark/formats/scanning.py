"""The rows of a file as record batches, and the handling of damage. Runs in a task's process.

Compiled modules read, verify and copy a batch of records at a time without the GIL; Arrow uses their columns without a
copy. pyarrow is imported when rows are made.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bookie.client.entries.digest import Digest, DigestType
from bookie.spark.formats.files import DataFile, closed_log
from bookie.spark.formats.known import known_digest
from bookie.spark.options import Cluster, Options, Ranges
from bookie.spark.schemas import Table
from bookie.storage.rows import KINDS, JournalRows, LogRows, Rows, RowSheet

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["journal_batches", "log_batches", "Plan"]

GARBAGE = KINDS.index("garbage")
HEADER_BYTES = 32
ROWS_OF_A_BATCH = 16384
BYTES_OF_A_BATCH = 4 << 20
SIZE_MAX = 0x7FFFFFFF
RECORD_BYTES_MAX = 64 << 20
TYPES = {
    "auto": (DigestType.CRC32C, DigestType.CRC32, DigestType.HMAC),
    "CRC32C": (DigestType.CRC32C,),
    "CRC32": (DigestType.CRC32,),
    "HMAC": (DigestType.HMAC,),
    "DUMMY": (DigestType.DUMMY,),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a scan. Pickled into tasks.

    Options: `validate`, `onCorruption`, `includeValue`, `ledgers`, `digestType`, `password`, `metadataServiceUri`,
    `bookkeeper.*`.
    """

    validate: str
    on_corruption: str
    include_value: bool
    ledgers: Ranges | None
    digest_type: str
    password: bytes
    cluster: Cluster | None = None
    """The cluster whose metadata has the digest type and password of each ledger. `digest_type` and `password` apply
    to ledgers that have none there.
    """

    @classmethod
    def of(cls, options: Options) -> "Plan":
        """Read the options of a scan.

        Raises:
            ConfigurationError: an option is invalid.
        """
        return cls(
            options.choice("validate", "none", ("none", "header", "digest")),
            options.choice("onCorruption", "fail", ("fail", "skip", "truncate")),
            options.boolean("includeValue", default=False),
            options.ranges("ledgers"),
            options.choice("digestType", "auto", TYPES),
            options.text("password").encode(),
            options.cluster() if options.text("metadataServiceUri") else None,
        )

    def sheet(self) -> RowSheet:
        """Return the sheet to which the compiled modules write rows."""
        return RowSheet(
            [Digest.of(kind, self.password).digester for kind in TYPES[self.digest_type]],
            headers=self.validate != "none",
            digests=self.validate == "digest",
            ranges=None if self.ledgers is None else np.array(self.ledgers, np.int64),
            rows_max=ROWS_OF_A_BATCH,
            values_max=BYTES_OF_A_BATCH if self.include_value else 0,
            digest_of=self._digest_of if self.cluster else None,
        )

    def _digest_of(self, ledger: int) -> Any:
        known = known_digest(self.cluster, ledger) if self.cluster else None
        return known.digester if known else None

    def columns(self, table: Table) -> Table:
        """Return the columns that are requested."""
        return table if self.include_value else table.without("value")


def log_batches(file: DataFile, plan: Plan, table: Table) -> Iterator["pa.RecordBatch"]:
    """Yield the records of an entry log.

    Raises:
        ValueError: the file is damaged, and `onCorruption` is `fail`.
        OSError: the file cannot be read.
    """
    if (scan := _opened(file, plan)) is None:
        return
    batches = _Batches(file, plan, table, {"log_id": file.id})
    try:
        while True:
            while (rows := scan.read()) is not None:
                good, whole = batches.good(rows)
                if len(good.ledger):
                    yield batches.of(good)
                if not whole:
                    return
            at, torn = scan.position, scan.torn
            if not scan.suspected and (not torn or _cut_while_written(file, at)):
                return
            if torn:
                batches.damaged(at, "no record begins here")
            if plan.on_corruption == "truncate":
                return
            more = scan.skip()
            end = scan.position if more else Path(file.path).stat().st_size
            if torn and end > at:
                yield batches.of(_garbage(at, end))
            if not more:
                return
    finally:
        scan.close()


def journal_batches(file: DataFile, plan: Plan, table: Table) -> Iterator["pa.RecordBatch"]:
    """Yield the records of a journal's intact groups.

    Raises:
        ValueError: the file is damaged, and `onCorruption` is `fail`.
        OSError: the file cannot be read.
    """
    batches = _Batches(file, plan, table, {"journal_id": file.id})
    scan = JournalRows(file.path, file.id, plan.sheet())
    try:
        while (rows := scan.read()) is not None:
            good, whole = batches.good(rows)
            if len(good.ledger):
                yield batches.of(good)
            if not whole:
                return
        at = scan.damaged_at
        if at is None and scan.torn and not file.newest:
            at = scan.position
        if at is not None:
            batches.damaged(at, "no complete group begins here")
            if plan.on_corruption == "skip":
                yield batches.of(_garbage(at, Path(file.path).stat().st_size))
    finally:
        scan.close()


def _opened(file: DataFile, plan: Plan) -> LogRows | None:
    """Open an entry log; return None if it is not one or no longer exists, and the plan allows that."""
    try:
        return LogRows(file.path, plan.sheet())
    except FileNotFoundError:
        if plan.on_corruption == "fail":
            raise FileNotFoundError(
                f"{file.path} was removed after the scan was planned, probably by garbage collection: scan again, or"
                " set onCorruption=skip"
            ) from None
    except ValueError as error:
        if plan.on_corruption == "fail":
            raise ValueError(f"{error}; or set onCorruption=skip to leave it out") from None
    return None


def _cut_while_written(file: DataFile, at: int) -> bool:
    """Return whether a log that is not complete just ends inside its last record: its writer is still running, or
    crashed.
    """
    with Path(file.path).open("rb") as data:
        size = data.seek(0, 2)
        data.seek(at)
        word = data.read(4)
    length = int.from_bytes(word, "big", signed=True)
    cut = len(word) < 4 or (0 < length <= RECORD_BYTES_MAX and at + 4 + length > size)
    return cut and not closed_log(file.path)


def _first(rows: Rows, count: int) -> Rows:
    cut: dict[str, Any] = {name: None if column is None else column[:count] for name, column in rows._asdict().items()}
    cut["ends"] = None if rows.ends is None else rows.ends[: count + 1]
    return Rows(**cut)


def _garbage(at: int, end: int) -> Rows:
    def one(value: int, kind: type[Any]) -> NDArray[Any]:
        return np.array([value], kind)

    nothing = one(-1, np.int64)
    size, kind = one(min(end - at, SIZE_MAX), np.int32), one(GARBAGE, np.int8)
    values, ends = np.empty(0, np.uint8), np.zeros(2, np.int32)
    return Rows(nothing, nothing, one(at, np.int64), nothing, nothing, size, kind, one(1, np.int8), values, ends)


class _Batches:
    """Turns the rows of one file into record batches."""

    def __init__(self, file: DataFile, plan: Plan, table: Table, ids: dict[str, int]) -> None:
        import pyarrow as pa  # noqa: PLC0415

        self._pa = pa
        self._file = file
        self._plan = plan
        self._ids = ids
        self._schema = plan.columns(table).arrow()
        self._kinds = pa.array(KINDS)

    def damaged(self, at: int, what: str) -> None:
        """Raise ValueError, unless the plan says to tolerate damage."""
        if self._plan.on_corruption == "fail":
            raise ValueError(
                f"{self._file.path}: damaged at byte {at}: {what}; set onCorruption=skip to read what is intact after"
                " it, or truncate to stop reading the file there"
            )

    def good(self, rows: Rows) -> tuple[Rows, bool]:
        """Return the rows to pass on, and whether these are all of them.

        Raises:
            ValueError: a row is invalid, and `onCorruption` is `fail`.
        """
        bad = np.flatnonzero(rows.ok == 0)
        if not len(bad) or self._plan.on_corruption == "skip":
            return rows, True
        k = int(bad[0])
        named = f"ledger {int(rows.ledger[k])}, entry {int(rows.entry[k])}"
        self.damaged(int(rows.position[k]), f"{named} has an invalid {self._plan.validate}")
        return _first(rows, k), False

    def of(self, rows: Rows) -> "pa.RecordBatch":
        """Return the rows as an Arrow record batch with the columns of the schema."""
        pa, n = self._pa, len(rows.ledger)
        plain = not rows.kind.any()
        short = (rows.kind != 0) | (rows.size < HEADER_BYTES)
        columns = {
            "path": lambda: pa.repeat(self._file.path, n),
            "log_id": lambda: pa.repeat(self._ids["log_id"], n),
            "journal_id": lambda: pa.repeat(self._ids["journal_id"], n),
            "position": lambda: pa.array(rows.position),
            "location": lambda: pa.array(rows.position | (self._file.id << 32)),
            "ledger_id": lambda: self._masked(rows.ledger, rows.ledger < 0),
            "entry_id": lambda: self._masked(rows.entry, rows.entry < 0),
            "entry_size": lambda: pa.array(rows.size),
            "lac": lambda: self._masked(rows.lac, short),
            "length": lambda: self._masked(rows.length, short),
            "digest_ok": lambda: self._verdict(rows),
            "kind": lambda: pa.repeat(KINDS[0], n) if plain else self._kinds.take(pa.array(rows.kind)),
            "value": lambda: self._values(rows, n),
        }
        return pa.RecordBatch.from_arrays([columns[name]() for name in self._schema.names], schema=self._schema)

    def _masked(self, column: NDArray[Any], missing: NDArray[np.bool_]) -> Any:
        return self._pa.array(column, mask=missing) if missing.any() else self._pa.array(column)

    def _verdict(self, rows: Rows) -> Any:
        if self._plan.validate != "digest":
            return self._pa.nulls(len(rows.ok), self._pa.bool_())
        return self._masked(rows.ok.astype(np.bool_), rows.kind != 0)

    def _values(self, rows: Rows, n: int) -> Any:
        pa = self._pa
        assert rows.ends is not None
        missing = rows.kind != 0
        valid = pa.array(~missing).buffers()[1] if missing.any() else None
        return pa.Array.from_buffers(pa.binary(), n, [valid, pa.py_buffer(rows.ends), pa.py_buffer(rows.values)])
