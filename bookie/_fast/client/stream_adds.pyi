from typing import Any

from numpy.typing import NDArray

from bookie._fast.client.add_window import AddWindow
from bookie._fast.client.adds_in_flight import AddsInFlight

class StreamAdds(AddsInFlight):
    def open(self, window: AddWindow) -> None: ...
    def send(self, window: AddWindow, count: int, transaction: int) -> None: ...
    def acknowledge(self, rows: NDArray[Any], count: int) -> int: ...
