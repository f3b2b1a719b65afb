from collections.abc import Collection

from bookie._fast.base.file import Files
from bookie._fast.store.storage import StorageEngine

NOT_HERE: int

def end_lag(stores: StorageEngine, at: int) -> None: ...
def replay_file(
    stores: StorageEngine,
    files: Files,
    path: str,
    journal_id: int,
    start: int,
    begins: list[int],
    *,
    full: Collection[int] = (),
    again: bool = False,
) -> tuple[dict[str, int], list[int]]: ...
