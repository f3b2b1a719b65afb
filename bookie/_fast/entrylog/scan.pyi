from collections.abc import Iterator
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.file import Files

class LogChunk(NamedTuple):
    ledger: NDArray[np.int64]
    entry: NDArray[np.int64]
    offset: NDArray[np.uint64]
    length: NDArray[np.uint32]
    end: int
    torn: bool
    more: bool

def scan_chunk(
    path: str | PathLike[str], start: int = 0, rows_max: int = 262144, files: Files | None = None
) -> LogChunk: ...
def scan_entry_log(
    path: str | PathLike[str], rows_max: int = 262144, files: Files | None = None
) -> Iterator[LogChunk]: ...
