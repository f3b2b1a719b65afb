from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

@final
class Entry:
    """An entry that was read: its id, and its payload as a view of the batch in which it arrived."""

    def __init__(self, id: int, data: memoryview) -> None: ...  # noqa: A002
    @property
    def id(self) -> int:
        """The id of the entry."""

    @property
    def data(self) -> memoryview:
        """The payload, as a view that keeps the whole batch in memory."""

    @property
    def payload(self) -> bytes:
        """A copy of the payload."""

    def __bytes__(self) -> bytes: ...
    __hash__: ClassVar[Any]

class EntryIterator(Iterator[Entry]):
    def __init__(self, run: memoryview, offsets: NDArray[np.int64], overhead: int, first: int) -> None: ...
    def __next__(self) -> Entry: ...

_Runs: TypeAlias = Sequence[tuple[Buffer, NDArray[np.int64]]]

def pack(runs: _Runs, overhead: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]]: ...
def heads(runs: _Runs, overhead: int) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]: ...
