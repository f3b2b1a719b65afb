from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bookie._fast.base.file import Files
from bookie._fast.wire.digest import Digester

def bad_digests(
    path: str | PathLike[str],
    offsets: NDArray[Any],
    lengths: NDArray[Any],
    which: NDArray[Any],
    digesters: Sequence[Digester | None],
    files: Files | None = None,
) -> NDArray[np.intp]: ...
