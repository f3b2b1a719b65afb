from collections.abc import Collection

from bookie._fast.base.file import Files
from bookie._fast.store.storage import StoresRoom

NOT_HERE: int

def end_lag(stores: StoresRoom, at: int) -> None: ...
def replay_file(
    stores: StoresRoom,
    files: Files,
    path: str,
    journal_id: int,
    start: int,
    begins: list[int],
    *,
    full: Collection[int] = (),
    again: bool = False,
) -> tuple[dict[str, int], list[int]]: ...
