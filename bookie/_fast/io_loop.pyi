from typing import Any

from bookie._fast.policy import PolicyRoom
from bookie._fast.read_path import ReadPoolRoom
from bookie._fast.storage import StoresRoom

class NetLimitsRoom:
    def __init__(
        self,
        *,
        frame_bytes_max: int,
        batch_bytes_max: int,
        output_high: int,
        output_low: int,
        output_bytes_max: int,
        input_bytes_max: int,
        connections_max: int,
        fd_reserve: int,
        throttle_ms: int,
        spin_us: int,
        nodelay: bool,
        keepalive: bool,
        authenticate: bool = ...,
    ) -> None: ...
    def stats(self) -> dict[str, int]: ...

class IoLoopRoom:
    def __init__(
        self, stores: StoresRoom, pool: ReadPoolRoom, limits: NetLimitsRoom, policy: PolicyRoom | None = None
    ) -> None: ...
    def listen(self, listener_fd: int, peers: list[IoLoopRoom]) -> None: ...
    def run(self) -> None: ...
    def stop(self, now: bool) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
