from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from bookie._fast.wire.digest import Digester

class Rows(NamedTuple):
    ledger: NDArray[np.int64]
    entry: NDArray[np.int64]
    position: NDArray[np.int64]
    lac: NDArray[np.int64]
    length: NDArray[np.int64]
    size: NDArray[np.int32]
    kind: NDArray[np.int8]
    ok: NDArray[np.int8]
    values: NDArray[np.uint8] | None
    ends: NDArray[np.int32] | None

@final
class RowSheet:
    def __init__(
        self,
        digesters: Iterable[Digester],
        *,
        headers: bool = False,
        digests: bool = False,
        ranges: NDArray[Any] | None = None,
        rows_max: int = 16384,
        values_max: int = 0,
        digest_of: Callable[[int], Digester | None] | None = None,
    ) -> None: ...
    def know(self, ledgers: Iterable[int], digesters: Iterable[Digester | None]) -> None: ...
