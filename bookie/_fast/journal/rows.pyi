from os import PathLike
from typing import Self, final

from bookie._fast.base.file import Files
from bookie._fast.wire.record_rows import RowSheet
from bookie._fast.wire.row_file import RowFile

@final
class JournalRows(RowFile):
    def __new__(
        cls, path: str | PathLike[str], journal_id: int, sheet: RowSheet, files: Files | None = None
    ) -> Self: ...
    @property
    def position(self) -> int: ...
    @property
    def torn(self) -> bool: ...
    @property
    def damaged_at(self) -> int | None: ...
    @property
    def version(self) -> int: ...
