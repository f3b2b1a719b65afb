from typing import Any

from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie._fast.client.adds_in_flight import AddsInFlight
from bookie._fast.client.read_run import ReadRun

class ReadsInFlight(AddsInFlight):
    def ask(self, sender: int, run: ReadRun, transaction: int, due_ms: int) -> None: ...
    def pick(self, rows: NDArray[Any], count: int, received: Buffer, bytes_max: int) -> tuple[int, list[int]]: ...
