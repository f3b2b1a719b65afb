from collections.abc import Iterable
from typing import NamedTuple

class OpView(NamedTuple):
    times: int
    total: int
    buckets: bytes

def edges() -> list[int]: ...
def tally(values: Iterable[int], times: int = 1, shared: bool = False) -> OpView: ...
