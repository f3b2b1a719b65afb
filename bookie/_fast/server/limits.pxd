"""The limits of the data port and the counters of all its I/O loops. `PortLimits` fills in the limits.

Shared by all I/O loops. The limits are constant while these run; the counters are atomic.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from bookie._fast.server.addresses cimport Addresses
from bookie._fast.server.long_polls cimport PollLimits

cdef enum AuthState:
    AUTH_OPEN = 0
    AUTH_WAITING = 1
    AUTH_DONE = 2

cdef struct NetLimits:
    # Each field gets the value of the same name in `bookie.server.configuration.loop_settings`.
    uint32_t frame_bytes_max
    uint32_t nesting_max     # of unknown groups in a V3 request, 1 to NESTING_MAX
    uint64_t batch_bytes_max
    uint64_t output_high_bytes  # unsent bytes of a connection above which its requests are not served
    uint64_t output_low_bytes  # and below which they are again
    int64_t output_bytes_max  # copied output of all connections
    int64_t input_bytes_max  # incomplete frames of all connections
    int64_t early_bytes_max  # the part of it for connections that are WAITING
    int64_t connections_max
    int64_t connections_of_address_max  # 0: only the limit for all addresses
    int64_t descriptors_left  # descriptors that connections must leave to files
    int64_t pending_adds_max  # per loop; more are refused
    int64_t pending_urgent_max  # above that and above pending_per_connection_max: fences and high priority
    int64_t pending_reads_max  # per loop, waiting for the disk
    int64_t pending_per_connection_max  # without a response, except for long polls
    int64_t adds_in_progress_max  # per loop: beyond this its connections are not read; 0 for no limit
    int64_t reads_in_progress_max
    int64_t long_polls_max   # of all connections
    int64_t long_polls_per_connection_max
    int64_t throttle_ms_max  # how long a request waits for room in the write cache
    int64_t spin_us
    bint tcp_nodelay
    bint keepalive
    bint authenticate        # logins are required, inside TLS as well
    bint tls_required        # in clear only START_TLS is served
    bint clear_login         # AUTH in clear after START_TLS, and a login in clear before it, count inside TLS
    int linger_s             # -1: off
    int64_t unauthenticated_ms_max  # 0 for no limit
    int64_t idle_ms_max      # 0 for no limit

cdef struct NetUsage:
    Addresses addresses
    PollLimits polls
    int64_t output_bytes
    int64_t waiting_bytes    # unsent responses, copied or not, and what the read pool owes
    int64_t input_bytes
    int64_t early_bytes      # of these, of connections that are WAITING
    int64_t input_asked      # how often a loop asked others to free some (module `server.slow_writers`)
    int64_t connections
    int64_t revocations      # of users; a loop that has seen fewer closes their connections

cdef class PortLimits:
    cdef NetLimits limits
    cdef NetUsage usage

# Return the state of a new connection.
cdef inline AuthState auth_at_first(const NetLimits* limits) noexcept nogil:
    return AUTH_WAITING if limits.authenticate or limits.tls_required else AUTH_OPEN
