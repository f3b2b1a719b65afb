from typing import TypedDict

from typing_extensions import Buffer

class _Request(TypedDict):
    version: int
    op: int
    flags: int
    priority: int
    ledger: int
    entry: int
    request_id: int
    count_max: int
    size_max: int
    previous_lac: int
    timeout_ms: int
    argument: int
    key: bytes | None
    body: bytes | None

def parse(frame: Buffer, nesting: int = ...) -> tuple[int, _Request]: ...
def parse_often(frame: Buffer, times: int) -> int: ...
def code(status: int) -> int: ...
