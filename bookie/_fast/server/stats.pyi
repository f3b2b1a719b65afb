from collections.abc import Iterable
from typing import NamedTuple

STATUS_WORDS: dict[int, str]

class Histogram(NamedTuple):
    edges: tuple[int, ...]
    counts: tuple[int, ...]
    sum: float

class BatchView(NamedTuple):
    request_ms: Histogram
    response_bytes: Histogram

def merged(views: Iterable[BatchView]) -> BatchView: ...
def tally(answers: Iterable[tuple[bool, int, int]]) -> tuple[BatchView, BatchView]: ...
