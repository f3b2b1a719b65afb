from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bookie._fast.store.storage import DirectoryStore, StorageEngine

def delete_ledgers(stores: StorageEngine, handle: DirectoryStore, ids: NDArray[np.int64] | Sequence[int]) -> int: ...
def ledger_ids(handle: DirectoryStore) -> NDArray[np.int64]: ...
