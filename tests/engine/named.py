"""The worlds that `python -m tests.engine SEEDS --world NAME` plays instead of what the seeds draw."""

from collections.abc import Callable

from tests.engine import directed
from tests.engine.hung import hung
from tests.engine.mended import mended
from tests.engine.plan import Plan
from tests.engine.sliced import sliced

__all__ = ["NAMED"]

NAMED: dict[str, Callable[[Plan], Plan]] = {
    **{name: getattr(directed, name) for name in directed.__all__},
    "hung": hung,
    "mended": mended,
    "sliced": sliced,
}
