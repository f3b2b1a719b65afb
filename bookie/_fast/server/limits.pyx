"""The limits are set before the first loop starts; only the atomic counters change after that."""
from bookie._fast.base.sync cimport bk_add, bk_load
from bookie._fast.server.addresses cimport addresses_free, addresses_init


cdef class PortLimits:
    """Limits and shared counters of all I/O loops.

    `values` has a number for each field of the struct `NetLimits`; `LoopSettings.values` makes it. Raises ValueError
    that names a field which is missing.
    """

    def __init__(self, dict values):
        self.limits = values
        self.usage.polls.waiting_max = self.limits.long_polls_max
        self.usage.polls.per_owner_max = self.limits.long_polls_per_connection_max
        addresses_init(&self.usage.addresses, self.limits.connections_of_address_max)

    def revoke(self) -> None:
        """Let every loop end the connections of revoked users in its next round. Any thread."""
        bk_add(&self.usage.revocations, 1)

    def stats(self) -> dict[str, int]:
        """Return gauges over all loops."""
        return {
            "connections": bk_load(&self.usage.connections),
            "connected_addresses": self.usage.addresses.count,
            "long_polls_waiting": bk_load(&self.usage.polls.waiting),
            "output_buffer_bytes": bk_load(&self.usage.output_bytes),
            "input_buffer_bytes": bk_load(&self.usage.input_bytes),
        }

    def __dealloc__(self):
        addresses_free(&self.usage.addresses)
