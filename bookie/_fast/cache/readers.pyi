class KnownReaders:
    def __init__(self) -> None: ...
    def advance(
        self,
        ledger: int,
        entry: int,
        *,
        requested: int = ...,
        log_id: int = ...,
        offset: int,
        entries_max: int = ...,
        bytes_max: int = ...,
    ) -> tuple[int, int]: ...
    def brought(self, ledger: int, first: int, last: int, log_end: int) -> None: ...
