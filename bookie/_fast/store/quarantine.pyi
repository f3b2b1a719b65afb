from typing import NamedTuple

from bookie._fast.store.storage import DirectoryStore, StorageEngine

REASONS: tuple[str, ...]

class Quarantine(NamedTuple):
    ledger: int
    reasons: tuple[str, ...]

def put(stores: StorageEngine, ledger: int, reason: str) -> bool: ...
def lift(stores: StorageEngine, ledger_id: int) -> bool: ...
def listed(handle: DirectoryStore) -> list[Quarantine]: ...
def news(handle: DirectoryStore, most: int) -> list[Quarantine]: ...
