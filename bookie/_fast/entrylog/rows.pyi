from os import PathLike
from typing import Self, final

from bookie._fast.base.file import Files
from bookie._fast.base.pace import Pacer
from bookie._fast.wire.record_rows import RowSheet
from bookie._fast.wire.row_file import RowFile

@final
class LogRows(RowFile):
    def __new__(
        cls,
        path: str | PathLike[str],
        sheet: RowSheet,
        start: int = 0,
        files: Files | None = None,
        pace: Pacer | None = None,
    ) -> Self: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def position(self) -> int: ...
    @property
    def torn(self) -> bool: ...
    @property
    def suspected(self) -> bool: ...
    def skip(self) -> bool: ...
