from os import PathLike

from bookie._fast.file import Files

class EntryLog:
    def __init__(
        self,
        directory: str | PathLike[str],
        next_id: int = 0,
        size_limit: int = 1073741824,
        files: Files | None = None,
    ) -> None: ...
    @property
    def current_id(self) -> int: ...
    def append(self, ledger: int, entries: list[bytes]) -> tuple[int, int]: ...
    def sync(self) -> None: ...
    def rotate(self) -> None: ...
