from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bookie._fast.store.storage import StoreRoom, StoresRoom

def delete_ledgers(stores: StoresRoom, room: StoreRoom, ids: NDArray[np.int64] | Sequence[int]) -> int: ...
def ledger_ids(room: StoreRoom) -> NDArray[np.int64]: ...
