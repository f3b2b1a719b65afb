from typing import NamedTuple

from bookie._fast.store.storage import StorageEngine

class Place(NamedTuple):
    entry: int
    log_id: int
    offset: int  # of the length word
    length: int  # of the entry, without the length word

def entry_places(stores: StorageEngine, ledger: int, first: int = 0, most: int = 1000) -> list[Place]: ...
