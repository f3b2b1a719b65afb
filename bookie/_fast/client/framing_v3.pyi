from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.wire.digest import Digester

class AddFramerV3:
    digester: Digester
    ledger: int
    def __init__(
        self,
        digester: Digester,
        key: bytes,
        ledger: int,
        frame_bytes_max: int,
        *,
        priority: int = 0,
        write_flags: int = 0,
        recovery: bool = False,
    ) -> None: ...
    def build(
        self, first: int, lac: int, length: int, payloads: Buffer, offsets: NDArray[np.int64], transaction: int
    ) -> NDArray[np.uint8]: ...

def stored_adds(
    ledger: int,
    key: bytes,
    records: Buffer,
    offsets: NDArray[np.int64],
    entries: NDArray[np.int64],
    transaction: int,
    frame_bytes_max: int,
    *,
    priority: int = 0,
    write_flags: int = 0,
    recovery: bool = False,
) -> NDArray[np.uint8]: ...
def cut(buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any]) -> tuple[int, int, int]: ...
def batch_run(response: Buffer) -> tuple[memoryview, int | None]: ...
