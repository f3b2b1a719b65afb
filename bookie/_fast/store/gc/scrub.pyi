from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bookie._fast.store.storage import DirectoryStore

LIVE: int
ELSEWHERE: int
DELETED: int
ORPHAN: int
DISAGREES: int
UNKNOWN: int

class Pointed(NamedTuple):
    ledger: NDArray[np.int64]
    entry: NDArray[np.int64]
    offset: NDArray[np.uint64]
    length: NDArray[np.uint32]
    more: bool

class Scrubber:
    directory: str
    def __new__(cls, handle: DirectoryStore) -> Self: ...
    def is_open(self, log_id: int) -> bool: ...
    def judge(
        self, log_id: int, ledgers: NDArray[Any], entries: NDArray[Any], offsets: NDArray[Any], lengths: NDArray[Any]
    ) -> NDArray[np.uint8]: ...
    def check_tables(self) -> None: ...
    def live_bytes(self) -> dict[int, int]: ...
    def pointed(self, log_id: int, first: int = 0, end: int = ..., most: int = ...) -> Pointed: ...
    def close(self) -> None: ...
