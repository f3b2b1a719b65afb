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
"""Connections that an address may have by default, however few there may be in all."""


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
    keepalive: bool = limit("serverSockKeepalive", True, "Notice dead peers (SO_KEEPALIVE).")
    linger_s: int = limit(
        "serverTcpLinger", -1, "SO_LINGER; -1 leaves it off.", low=-1, high=3600, unit="s",
        differs="0: a linger of 0 throws away answers that are still on their way at close",
    )  # fmt: skip
    output_low_bytes: int = limit(
        "serverWriteBufferLowWaterMark", MIB,
        "Answers waiting in a connection, below which its requests are read again.", low=1, unit="bytes",
        differs="393216: one batch answer may be larger than that",
    )  # fmt: skip
    output_high_bytes: int = limit(
        "serverWriteBufferHighWaterMark", 4 * MIB,
        "Answers waiting in a connection, above which its requests are no longer read.", low=1, unit="bytes",
        differs="524288: one batch answer may be larger than that",
    )  # fmt: skip
    frame_bytes_max: int = limit(
        "nettyMaxFrameSizeBytes", 5 * MIB,
        "Largest frame, its 4-byte length included; bounds the size of an entry.", low=BOUNDS.frame_bytes_least,
        high=BOUNDS.frame_bytes, unit="bytes", also="storage.frame_bytes_max",
    )  # fmt: skip
    batch_bytes_max: int = limit(
        "maxBatchReadSize", 5 * MIB, "Largest batch-read answer, whatever the client asks for.", low=1024,
        high=256 * MIB, unit="bytes",
    )  # fmt: skip
    backlog: int = limit(
        "serverSocketBacklog", 1024, "Connections waiting to be accepted.", low=1, high=65535,
    )  # fmt: skip
    connections_max: int = limit(
        "serverMaxConnections", 10_000, "Connections at a time; further ones are closed at once.", low=1,
        high=1_000_000,
    )  # fmt: skip
    connections_per_address_max: int = limit(
        "serverMaxConnectionsPerAddress", -1, "Connections at a time from one IP address, loopback too; further ones"
        " are closed at once. -1 is a quarter of `serverMaxConnections`, at least 16; 0 is no limit of its own.",
        low=-1, high=1_000_000, differs="none: one address can take every connection there is",
    )  # fmt: skip
    unauthenticated_ms_max: int = limit(
        "serverAuthenticationTimeoutMs", 10_000, "Where authentication is configured: a connection that has not"
        " completed it after this long is closed. 0 is never.", high=86_400_000, unit="ms",
    )  # fmt: skip
    idle_ms_max: int = limit(
        "serverIdleTimeoutMs", 3_600_000, "A connection on which no request arrives, no answer moves and nothing waits"
        " for this long is closed; clients open another one with their next request. 0 is never.", high=86_400_000,
        unit="ms", differs="never: what forgotten clients leave open stays",
    )  # fmt: skip
    pending_adds_max: int = limit(
        "maxPendingAddRequestsPerThread", 100_000, "Adds, forces, fences and explicit LACs without an answer, of one"
        " I/O loop; more are refused with `ETOOMANYREQUESTS`. Fences and requests of high priority have"
        " `serverMaxUrgentRequests` more.", low=1, high=100_000_000, differs="10000, of adds that no thread has begun,"
        " and no limit for high priority; here those count that wait for the journal, too",
    )  # fmt: skip
    pending_reads_max: int = limit(
        "maxPendingReadRequestsPerThread", 10_000, "Reads that wait for the disk, of one I/O loop; more are refused"
        " with `ETOOMANYREQUESTS`. Reads of high priority are not, as far as `serverMaxUrgentRequests` lets them.",
        low=1, high=10_000_000,
    )  # fmt: skip
    pending_per_connection_max: int = limit(
        "maxPendingRequestsPerConnection", 50_000, "Requests of one connection without an answer, waiting long polls"
        " aside; more are refused with `ETOOMANYREQUESTS`. Fences and requests of high priority have"
        " `serverMaxUrgentRequests` more.", low=1, high=100_000_000,
    )  # fmt: skip
    pending_urgent_max: int = limit(
        "serverMaxUrgentRequests", 10_000, "Fences and requests of high priority, which recoveries consist of, without"
        " an answer: so many pass the two limits above on adds of an I/O loop and requests of a connection; more are"
        " refused with `ETOOMANYREQUESTS`. Where clients log in, this is for those who may write. Elsewhere an address"
        " has an eighth of it; with as many under way, further ones of it are like others.", low=1, high=100_000_000,
    )  # fmt: skip
    adds_in_progress_max: int = limit(
        "maxAddsInProgressLimit", 0, "Adds without an answer, of all I/O loops, each with its share; while there are"
        " more, its connections are not read. 0 is no limit.", high=100_000_000,
    )  # fmt: skip
    reads_in_progress_max: int = limit(
        "maxReadsInProgressLimit", 0, "The same for reads that wait for the disk.", high=100_000_000,
    )  # fmt: skip
    nesting_max: int = limit(
        "serverMaxProtobufNesting", 100, "Messages and groups within each other in a V3 request; what goes deeper is"
        " no V3 request. The protobuf library takes 100; requests themselves need 1.", low=1, high=100,
    )  # fmt: skip
    long_polls_max: int = limit(
        "serverMaxLongPolls", 100_000, "Reads that wait for a higher LAC, over all connections, half a KiB each; more"
        " are refused with `ETOOMANYREQUESTS`.", high=100_000_000,
    )  # fmt: skip
    long_polls_per_connection_max: int = limit(
        "serverMaxLongPollsPerConnection", 10_000, "The same for one connection.", high=100_000_000,
    )  # fmt: skip
    input_bytes_max: int = limit(
        "serverMaxInputMemorySizeMb", 256, "Memory for requests that are not yet handled, over all connections; an"
        " eighth of it for those that are to authenticate still.", low=8, high=1 << 20, unit="MiB", scale=MIB,
    )  # fmt: skip
    output_bytes_max: int = limit(
        "serverMaxOutputMemorySizeMb", 256, "Memory for answers that are not yet sent, over all connections.", low=8,
        high=1 << 20, unit="MiB", scale=MIB,
    )  # fmt: skip
    spin_us: int = limit(
        "serverSpinMicros", 0, "Busy-poll this long before sleeping: lowers the latency of one request at a time,"
        " costs CPU. 0 never spins.", high=1000, unit="us",
    )  # fmt: skip
    descriptors_left: int = 320
    """Connections leave so many of the process to others; `process.shares` puts the number in."""

    @property
    def connections_of_address_max(self) -> int:
        """Connections of one address; 0: as many as in all."""
        share = max(self.connections_max // 4, ADDRESS_LEAST)
        return share if self.connections_per_address_max < 0 else self.connections_per_address_max

    @property
    def early_bytes_max(self) -> int:
        """Bytes that frames of all connections which are not authenticated yet may take, where that is wanted."""
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
