from collections.abc import Sequence
from typing import NamedTuple

from bookie._fast.base.file import Files

class Used(NamedTuple):
    operations: int
    bytes: int

class SlowFiles(Files): ...

def set_disks(groups: Sequence[Sequence[str]], *, latency_us: int, bytes_s: int = 0) -> None: ...
def used() -> list[Used]: ...
