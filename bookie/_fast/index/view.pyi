from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from typing_extensions import Buffer

from bookie._fast.base.file import Files

class IndexDamaged(ValueError): ...

class Hit(NamedTuple):
    entry: int
    log_id: int
    offset: int
    length: int
    span_bytes: int
    span_last: int

class Run(NamedTuple):
    ledger: int
    first: int
    log_id: int
    offset: int
    lengths: list[int]

class Ledger(NamedTuple):
    ledger: int
    key: bytes
    fenced: bool
    limbo: bool
    lac: bytes
    quarantine: int = 0

class Stat(NamedTuple):
    runs: int
    run_pages: int
    ledgers: int
    ledger_pages: int
    page_bytes: int
    file_bytes: int

class Reader:
    def lookup(self, ledger: int, entry: int) -> Hit | None: ...
    def next(self, ledger: int, entry: int) -> Hit | None: ...
    def last(self, ledger: int) -> int | None: ...
    def count_present(self, ledger: int, entries: Buffer) -> int: ...
    def ledgers(self) -> list[Ledger]: ...
    def fences(self) -> list[tuple[int, int]]: ...
    def runs(self, ledger: int) -> list[Run]: ...
    def walk(self, most: int) -> list[tuple[int, int, int, int, int]]: ...
    def stat(self) -> Stat: ...
    def close(self) -> None: ...

class Index:
    @staticmethod
    def open(path: str | Path, map_bytes: int = ..., files: Files | None = None) -> Index: ...
    def reader(self) -> Reader: ...
    def begin(self) -> None: ...
    def put_run(self, ledger: int, first: int, log_id: int, offset: int, lengths: Sequence[int]) -> None: ...
    def put_ledger(
        self,
        ledger: int,
        key: bytes,
        fenced: bool = False,
        limbo: bool = False,
        lac: bytes = b"",
        quarantine: int = 0,
    ) -> None: ...
    def put_fence(self, ledger: int, deleted_ms: int) -> None: ...
    def delete_ledger(self, ledger: int) -> None: ...
    def delete_runs(self, ledger: int, most: int) -> tuple[int, bool]: ...
    def relocate(
        self, ledger: int, first: int, last: int, size: int, source: tuple[int, int], target: tuple[int, int]
    ) -> int: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...
