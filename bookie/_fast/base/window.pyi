from collections.abc import Iterable
from os import PathLike

from bookie._fast.base.file import Files

def read_pieces(
    path: str | PathLike[str],
    pieces: Iterable[tuple[int, int, int]],
    capacity_max: int = 4194304,
    files: Files | None = None,
) -> list[tuple[int, bytes, int]]: ...
