"""Filled before the first loop starts; only the counters change after that, atomically."""
from bookie._fast.base.sync cimport bk_add, bk_load
from bookie._fast.server.addresses cimport addresses_free, addresses_init
from bookie._fast.wire.proto cimport NESTING_MAX

cdef enum:
    SHARE_OF_ADDRESS = 8         # the part of the room for urgent requests that one address may have


cdef class PortLimits:
    """Limits and shared counters of all I/O loops."""

    def __init__(self, *, frame_bytes_max: int, batch_bytes_max: int, output_high: int, output_low: int,
                 output_bytes_max: int, input_bytes_max: int, connections_max: int, fd_reserve: int,
                 throttle_ms: int, spin_us: int, nodelay: bool, keepalive: bool, linger_s: int = -1,
                 authenticate: bool = False, connections_per_address_max: int = 0, unauthenticated_ms: int = 0,
                 idle_ms: int = 0, pending_adds_max: int = 1 << 40, pending_urgent_max: int = 10_000,
                 pending_reads_max: int = 0, pending_per_connection_max: int = 1 << 40, adds_in_progress_max: int = 0,
                 reads_in_progress_max: int = 0, long_polls_max: int = 0, long_polls_per_connection_max: int = 0,
                 nesting_max: int = NESTING_MAX, early_bytes_max: int = 1 << 40, tls_required: bool = False,
                 clear_login: bool = True):
        self.limits.frame_bytes_max = frame_bytes_max
        self.limits.nesting_max = nesting_max
        self.limits.batch_bytes_max = batch_bytes_max
        self.limits.output_high = output_high
        self.limits.output_low = output_low
        self.limits.output_bytes_max = output_bytes_max
        self.limits.input_bytes_max = input_bytes_max
        self.limits.early_bytes_max = early_bytes_max
        self.limits.connections_max = connections_max
        self.limits.fd_reserve = fd_reserve
        self.limits.throttle_ns = throttle_ms * 1000000
        self.limits.spin_ns = spin_us * 1000
        self.limits.nodelay = nodelay
        self.limits.keepalive = keepalive
        self.limits.linger_s = linger_s
        self.limits.auth = AUTH_WAITING if authenticate or tls_required else AUTH_OPEN
        self.limits.authenticate = authenticate
        self.limits.tls_required = tls_required
        self.limits.clear_login = clear_login and not tls_required
        self.limits.unauthenticated_ns = unauthenticated_ms * 1000000
        self.limits.idle_ns = idle_ms * 1000000
        self.limits.pending_adds_max = pending_adds_max
        self.limits.pending_urgent_max = pending_urgent_max
        self.limits.urgent_of_address_max = max(pending_urgent_max // SHARE_OF_ADDRESS, 1)
        self.limits.pending_reads_max = pending_reads_max
        self.limits.pending_per_connection_max = pending_per_connection_max
        self.limits.adds_in_progress_max = adds_in_progress_max
        self.limits.reads_in_progress_max = reads_in_progress_max
        self.limits.polls.waiting_max = long_polls_max
        self.limits.polls.per_owner_max = long_polls_per_connection_max
        addresses_init(&self.limits.addresses, connections_per_address_max)

    def revoke(self) -> None:
        """Some users were revoked: every loop ends their connections in its next round. Any thread."""
        bk_add(&self.limits.revocations, 1)

    def stats(self) -> dict[str, int]:
        """Gauges over all loops."""
        return {
            "connections": bk_load(&self.limits.connections),
            "connected_addresses": self.limits.addresses.count,
            "long_polls_waiting": bk_load(&self.limits.polls.waiting),
            "output_buffer_bytes": bk_load(&self.limits.output_bytes),
            "input_buffer_bytes": bk_load(&self.limits.input_bytes),
        }

    def __dealloc__(self):
        addresses_free(&self.limits.addresses)
