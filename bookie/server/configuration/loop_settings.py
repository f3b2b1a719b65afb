"""The limits of the data port: one frozen value with a field for each.

A field carries the key of the configuration file that sets it. What the compiled I/O loops obey is in a struct with a
field of the same name (`bookie/_fast/server/limits.pxd`), which `values` fills: a new limit needs a field here and one
there.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from bookie._fast.base.bounds import BOUNDS
from bookie.server.configuration.key import Key
from bookie.storage.settings import MIB

__all__ = ["loop_keys", "LoopSettings"]

ADDRESS_LEAST = 16
"""The fewest connections that one address may have by default, however low the limit for all addresses is."""


def limit(name: str, default: int, doc: str, *, also: str = "", scale: int = 1, **rest: Any) -> Any:
    """Return a dataclass field that is set by the key `name`.

    `default` is in the unit of the key, of which the field holds `scale` times as many. `also` names a field of other
    settings with the same value. `rest` goes to `Key`.
    """
    text = str(default).lower()
    key = Key(name, also, type(default), text, doc, scale=scale, **rest)
    return dataclasses.field(default=key.parse(text), metadata={"key": key})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """Limits of the data port. Sizes are in bytes; those of memory are budgets over all connections."""

    tcp_nodelay: bool = limit("serverTcpNoDelay", True, "Send small answers at once (TCP_NODELAY).")
    keepalive: bool = limit("serverSockKeepalive", True, "Detect dead peers with TCP keepalive (SO_KEEPALIVE).")
    linger_s: int = limit(
        "serverTcpLinger", -1, "With 0, answers that are still being sent when the bookie closes a connection are"
        " discarded (SO_LINGER). Otherwise the system sends them, and no thread waits for that.", low=-1, high=3600,
        unit="s", differs="0",
    )  # fmt: skip
    output_low_bytes: int = limit(
        "serverWriteBufferLowWaterMark", MIB, "Requests of a connection are read again when its unsent answers fall"
        " below this size.", low=1, unit="bytes", differs="393216, which one batch answer may exceed",
    )  # fmt: skip
    output_high_bytes: int = limit(
        "serverWriteBufferHighWaterMark", 4 * MIB, "Requests of a connection are no longer read when its unsent"
        " answers exceed this size.", low=1, unit="bytes", differs="524288, which one batch answer may exceed",
    )  # fmt: skip
    frame_bytes_max: int = limit(
        "nettyMaxFrameSizeBytes", 5 * MIB, "Largest frame, including its 4-byte length. It also limits the size of an"
        " entry.", low=BOUNDS.frame_bytes_least, high=BOUNDS.frame_bytes, unit="bytes", also="storage.frame_bytes_max",
    )  # fmt: skip
    batch_bytes_max: int = limit(
        "maxBatchReadSize", 5 * MIB, "Largest answer to a batch read, whatever the client requests.", low=1024,
        high=256 * MIB, unit="bytes",
    )  # fmt: skip
    backlog: int = limit("serverSocketBacklog", 1024, "Connections that may wait to be accepted.", low=1, high=65535)
    connections_max: int = limit(
        "serverMaxConnections", 10_000, "Maximum number of connections; further ones are closed at once.", low=1,
        high=1_000_000,
    )  # fmt: skip
    connections_per_address_max: int = limit(
        "serverMaxConnectionsPerAddress", -1, "Maximum number of connections from one IP address, including loopback"
        " addresses; further ones are closed at once. -1 means a quarter of `serverMaxConnections`, but at least 16; 0"
        " means no separate limit.", low=-1, high=1_000_000, differs="no limit, so that one address can take every"
        " connection",
    )  # fmt: skip
    unauthenticated_ms_max: int = limit(
        "serverAuthenticationTimeoutMs", 10_000, "If authentication is configured, a connection that is not"
        " authenticated after this time is closed. 0 means never.", high=86_400_000, unit="ms",
    )  # fmt: skip
    idle_ms_max: int = limit(
        "serverIdleTimeoutMs", 3_600_000, "A connection is closed if for this time no request arrives, no answer is"
        " sent and nothing is outstanding; clients open another one with their next request. 0 means never.",
        high=86_400_000, unit="ms", differs="never, so that connections of forgotten clients stay open",
    )  # fmt: skip
    pending_adds_max: int = limit(
        "maxPendingAddRequestsPerThread", 100_000, "Maximum number of outstanding adds, forces, fences and explicit"
        " LACs of one I/O loop; more are refused with `ETOOMANYREQUESTS`. Each journal may have its equal part in any"
        " case, so that one that hangs does not use up that of others. Fences and requests of high priority may exceed"
        " it by `serverMaxUrgentRequests`.", low=1, high=100_000_000, differs="10000 adds that no thread has"
        " begun, and no limit for high priority; ours also counts adds that wait for the journal",
    )  # fmt: skip
    pending_reads_max: int = limit(
        "maxPendingReadRequestsPerThread", 10_000, "Maximum number of reads of one I/O loop that wait for the disk;"
        " more are refused with `ETOOMANYREQUESTS`. Reads of high priority may exceed it, as far as"
        " `serverMaxUrgentRequests` permits.", low=1, high=10_000_000,
    )  # fmt: skip
    pending_per_connection_max: int = limit(
        "maxPendingRequestsPerConnection", 50_000, "Maximum number of outstanding requests of one connection, not"
        " counting waiting long polls; more are refused with `ETOOMANYREQUESTS`. Fences and requests of high priority"
        " may exceed it by `serverMaxUrgentRequests`.", low=1, high=100_000_000,
    )  # fmt: skip
    pending_urgent_max: int = limit(
        "serverMaxUrgentRequests", 10_000, "How many outstanding fences and requests of high priority, which"
        " recoveries consist of, may exceed the limits above on adds of an I/O loop and on requests of a connection;"
        " more are refused with `ETOOMANYREQUESTS`. If clients log in, this is only for clients that may write."
        " Otherwise one address may use an eighth of it; its further requests count like all others.", low=1,
        high=100_000_000,
    )  # fmt: skip
    adds_in_progress_max: int = limit(
        "maxAddsInProgressLimit", 0, "Maximum number of outstanding adds, divided equally among the I/O loops; a loop"
        " that reaches its share stops reading its connections. 0 means no limit.", high=100_000_000,
    )  # fmt: skip
    reads_in_progress_max: int = limit(
        "maxReadsInProgressLimit", 0, "The same for reads that wait for the disk.", high=100_000_000,
    )  # fmt: skip
    nesting_max: int = limit(
        "serverMaxProtobufNesting", 100, "How deeply messages and groups may be nested in a V3 request; a frame with"
        " deeper nesting is not a V3 request. The protobuf library accepts 100; requests need 1.", low=1, high=100,
    )  # fmt: skip
    long_polls_max: int = limit(
        "serverMaxLongPolls", 100_000, "Maximum number of reads that wait for a higher LAC, over all connections, with"
        " half a KiB of memory each; more are refused with `ETOOMANYREQUESTS`.", high=100_000_000,
    )  # fmt: skip
    long_polls_per_connection_max: int = limit(
        "serverMaxLongPollsPerConnection", 10_000, "The same for one connection.", high=100_000_000,
    )  # fmt: skip
    input_bytes_max: int = limit(
        "serverMaxInputMemorySizeMb", 256, "Memory for requests that are not yet processed, over all connections."
        " Connections that are not yet authenticated may use an eighth of it.", low=8, high=1 << 20, unit="MiB",
        scale=MIB,
    )  # fmt: skip
    output_bytes_max: int = limit(
        "serverMaxOutputMemorySizeMb", 256, "Memory for answers that are not yet sent, over all connections.", low=8,
        high=1 << 20, unit="MiB", scale=MIB,
    )  # fmt: skip
    spin_us: int = limit(
        "serverSpinMicros", 0, "Busy-poll for this long before sleeping. This lowers the latency of clients with one"
        " outstanding request and costs CPU time. 0 means never.", high=1000, unit="us",
    )  # fmt: skip
    descriptors_left: int = 320
    """Descriptors of the process that connections leave to others; `process.shares` sets it."""

    @property
    def connections_of_address_max(self) -> int:
        """The most connections of one address; 0 for no separate limit."""
        share = max(self.connections_max // 4, ADDRESS_LEAST)
        return share if self.connections_per_address_max < 0 else self.connections_per_address_max

    @property
    def early_bytes_max(self) -> int:
        """The most bytes of frames from all unauthenticated connections, if authentication is required."""
        return self.input_bytes_max // 8

    def values(self, *, throttle_ms_max: int, loops: int = 1, authenticate: bool = False, tls_required: bool = False,
               clear_login: bool = True) -> dict[str, int]:  # fmt: skip
        """Return a number for each field of the loops' struct.

        Args:
            throttle_ms_max: How long a request waits for room in the write cache.
            loops: The number of I/O loops, which share what is allowed to be in progress.
            authenticate: Whether a connection must log in.
            tls_required: Whether only START_TLS is served on a connection in clear.
            clear_login: Whether a login in clear counts on a connection that becomes encrypted.
        """
        return {
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(LoopSettings)},
            "connections_of_address_max": self.connections_of_address_max,
            "early_bytes_max": self.early_bytes_max,
            "adds_in_progress_max": -(-self.adds_in_progress_max // loops),
            "reads_in_progress_max": -(-self.reads_in_progress_max // loops),
            "throttle_ms_max": throttle_ms_max,
            "authenticate": authenticate,
            "tls_required": tls_required,
            "clear_login": clear_login and not tls_required,
        }


def loop_keys() -> tuple[Key, ...]:
    """Return the keys that set the fields, in their order."""
    keys = ((field.name, field.metadata["key"]) for field in dataclasses.fields(LoopSettings) if field.metadata)
    return tuple(dataclasses.replace(key, field=f"network.{name} {key.field}".rstrip()) for name, key in keys)
