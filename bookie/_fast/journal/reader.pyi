from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.file import Files

class JournalRows(NamedTuple):
    ledger: NDArray[np.int64]
    kind: NDArray[np.int64]
    position: NDArray[np.int64]
    length: NDArray[np.int64]
    version: int
    end: int
    records: int
    groups: int
    torn: bool
    damaged: bool
    damaged_at: int | None

def scan_journal(
    path: str | PathLike[str], journal_id: int, start: int = 0, files: Files | None = None
) -> JournalRows: ...
