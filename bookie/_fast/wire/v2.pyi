from typing import TypedDict

from typing_extensions import Buffer

class _Request(TypedDict):
    op: int
    version: int
    flags: int
    ledger: int
    entry: int
    request_id: int
    count_max: int
    size_max: int
    key: bytes | None
    body: bytes | None

def parse(frame: Buffer) -> tuple[int, _Request]: ...
def code(status: int) -> int: ...
def answer(version: int, op: int, code: int, ledger: int, entry: int, payload: bytes = b"") -> bytes: ...
def batch_answer(version: int, code: int, ledger: int, start: int, request_id: int, records: bytes = b"") -> bytes: ...
