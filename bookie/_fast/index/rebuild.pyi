from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.file import Files
from bookie._fast.index.view import Index

class LogPart(NamedTuple):
    records: int
    bytes: int
    end: int
    torn: bool
    more: bool

class Rebuild:
    def __init__(
        self, index: Index, wanted: Sequence[int] | NDArray[np.int64] | None = None, *, stretch_bytes: int = ...
    ) -> None: ...
    @property
    def taken(self) -> int: ...
    @property
    def odd(self) -> int: ...
    @property
    def runs(self) -> int: ...
    def scan(
        self,
        path: str | PathLike[str],
        log_id: int,
        start: int = 0,
        bytes_max: int = ...,
        files: Files | None = None,
    ) -> LogPart: ...
    def finish(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]: ...
    def abort(self) -> None: ...

def sort_rows(rows: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]: ...
