from typing import NamedTuple

from bookie._fast.base.op_stats import OpView

class DirectoryView(NamedTuple):
    times: dict[str, tuple[OpView, OpView]]
    added: OpView
    answered: OpView
