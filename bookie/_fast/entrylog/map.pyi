from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.file import Files

class LogLedgers(NamedTuple):
    ledgers: NDArray[np.int64]  # ascending
    bytes: NDArray[np.int64]  # of each ledger's records, length words included
    from_map: bool  # False: the file has no ledgers map that accounts for all bytes, and was scanned
    torn_at: int | None  # where a scan ended inside a record

def read_map(path: str | PathLike[str]) -> LogLedgers | None: ...
def scan_ledgers(path: str | PathLike[str], files: Files | None = None) -> LogLedgers: ...
