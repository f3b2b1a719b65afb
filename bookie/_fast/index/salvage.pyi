from collections.abc import Iterable
from os import PathLike

from bookie._fast.index.view import Index

def salvage_file(path: str | PathLike[str], fresh: Index) -> tuple[int, int, list[tuple[int, int]]]: ...
def put_doubts(fresh: Index, ledgers: Iterable[int]) -> None: ...
