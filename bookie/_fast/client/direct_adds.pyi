from collections.abc import Callable, Sized

from typing_extensions import Buffer

from bookie._fast.client.direct_link import DirectLink
from bookie._fast.client.write_window import Add, WriteWindow

class DirectAdder:
    def __init__(self, window: WriteWindow, key: bytes, take_over: Callable[[], object], waiting: Sized) -> None: ...
    def claim(self, payload: Buffer, entry: int, changes: int, now: float) -> Add | None: ...
    def undisturbed(self, changes: int) -> bool: ...
    def settle(self, stored: bool) -> bool: ...
    def add(
        self,
        payload: Buffer,
        entry: int,
        changes: int,
        now: float,
        links: tuple[DirectLink, ...],
        since_s: float,
        timeout_s: float,
    ) -> int | Add | None: ...
