from typing import NamedTuple

from bookie._fast.store.storage import StoreRoom, StoresRoom

REASONS: tuple[str, ...]

class Quarantine(NamedTuple):
    ledger: int
    reasons: tuple[str, ...]

def put(stores: StoresRoom, ledger: int, reason: str) -> bool: ...
def lift(stores: StoresRoom, ledger: int) -> bool: ...
def listed(room: StoreRoom) -> list[Quarantine]: ...
def news(room: StoreRoom, most: int) -> list[Quarantine]: ...
