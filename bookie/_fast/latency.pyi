from collections.abc import Iterable
from typing import NamedTuple

class LatencyView(NamedTuple):
    times: int
    sum_ns: int
    buckets: tuple[int, ...]

def tally(latencies_ns: Iterable[int]) -> LatencyView: ...
