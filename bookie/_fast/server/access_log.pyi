from os import PathLike

from bookie._fast.base.file import Files

BYTES_A_LOOP: int

class AccessLogBuffer:
    def __init__(
        self,
        path: str | PathLike[str],
        *,
        sample_rate: float,
        file_bytes_max: int,
        files_max: int,
        files: Files | None = None,
    ) -> None: ...
    def run(self) -> int: ...
    def stop(self) -> None: ...
    def stats(self) -> dict[str, int]: ...
    def close(self) -> None: ...
