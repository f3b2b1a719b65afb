from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.wire.digest import Digester

RESPONSE: np.dtype[np.void]

class AddFramer:
    digester: Digester
    ledger: int
    payload_max: int
    def __init__(
        self, digester: Digester, key: Buffer, ledger: int, frame_bytes_max: int, *, flags: int = 0
    ) -> None: ...
    def build(
        self, first: int, lac: int, length: int, payloads: Buffer, offsets: NDArray[np.int64]
    ) -> NDArray[np.uint8]: ...

def stored_adds(
    key: Buffer, records: Buffer, offsets: NDArray[np.int64], frame_bytes_max: int, flags: int = 0
) -> NDArray[np.uint8]: ...
def add_frame(key: Buffer, entry: Buffer, flags: int = 0) -> bytes: ...
def read_frame(ledger: int, entry: int, flags: int = 0, key: Buffer | None = None) -> bytes: ...
def batch_read_frame(
    ledger: int,
    start: int,
    request_id: int,
    count_max: int,
    size_max: int,
    flags: int = 0,
    key: Buffer | None = None,
) -> bytes: ...
def auth_frame(message: bytes) -> bytes: ...
def cut(buffer: Buffer, frame_bytes_max: int, rows: NDArray[Any]) -> tuple[int, int, int]: ...
