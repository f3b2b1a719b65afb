from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.wire.digest import Digester

_Records: TypeAlias = tuple[memoryview, NDArray[np.int64], NDArray[np.int64]]

class Add:
    window: WriteWindow
    entry: int
    def done(self) -> bool: ...
    def result(self) -> int: ...
    def wait(self, timeout: float = -1.0) -> bool: ...
    def __await__(self) -> Generator[Any, None, int]: ...

class WriteWindow:
    digester: Digester
    ledger: int
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    advanced: bool
    deferred: bool
    judged: bool
    holding: bool
    count_max: int
    bytes_max: int
    record_bytes_max: int
    next: int
    head: int
    lac: int
    length: int
    head_length: int
    count: int
    bytes: int
    error: Exception | None
    def __init__(
        self,
        digester: Digester,
        ledger: int,
        quorums: tuple[int, int, int],
        explain: Callable[[int, Exception], Exception],
        *,
        first: int = 0,
        length: int = 0,
        count_max: int = 10_000,
        bytes_max: int = ...,
        record_bytes_max: int = ...,
        advanced: bool = False,
        deferred: bool = False,
        judged: bool = False,
    ) -> None: ...
    @property
    def first_missing(self) -> int: ...
    @property
    def stuck(self) -> bool: ...
    @property
    def unsent(self) -> int: ...
    def append(self, payload: Buffer, entry: int = -1) -> Add | None: ...
    def append_many(self, payloads: Buffer, offsets: NDArray[np.int64], first: int = 0) -> int: ...
    def take(self, now: float, bytes_max: int = ...) -> int: ...
    def batch(self, index: int) -> _Records | None: ...
    def answered(
        self, index: int, entries: NDArray[np.int64], codes: NDArray[np.int32]
    ) -> list[tuple[int, int, bool]]: ...
    def quorate(self) -> list[tuple[int, tuple[int, ...]]]: ...
    def complete(self, entry: int) -> None: ...
    def release(self) -> int: ...
    def fail_index(self, entry: int, index: int) -> tuple[int, ...]: ...
    def unacked(self, index: int, first: int = 0) -> NDArray[np.int64]: ...
    def unack(self, index: int) -> None: ...
    def records(self, entries: NDArray[np.int64]) -> _Records: ...
    def overdue(self, before: float) -> int: ...
    def raise_lac(self, lac: int) -> None: ...
    def fail(self, error: Exception) -> list[int]: ...
    def add(self, entry: int) -> Add: ...
