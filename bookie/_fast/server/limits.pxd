"""The limits of the data port. `PortLimits` fills them in.

Shared by all I/O loops and constant once they run, but for the counters at the end, which are atomic.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.server.addresses cimport Addresses
from bookie._fast.server.long_polls cimport PollLimits

cdef enum AuthState:
    AUTH_OPEN = 0
    AUTH_WAITING = 1
    AUTH_DONE = 2

cdef struct NetLimits:
    uint32_t frame_bytes_max
    uint32_t nesting_max     # of groups in a V3 request that nobody knows, 1 to NESTING_MAX
    uint64_t batch_bytes_max
    uint64_t output_high     # bytes per connection: stop reading its requests
    uint64_t output_low      # read on
    int64_t output_bytes_max  # copied output of all connections
    int64_t input_bytes_max  # incomplete frames of all connections
    int64_t early_bytes_max  # of those that are WAITING
    int64_t connections_max
    int64_t fd_reserve       # descriptors that connections must leave to files
    int64_t pending_adds_max  # per loop: more are refused
    int64_t pending_urgent_max  # above that, and above pending_per_connection_max: fences and high priority
    int64_t urgent_of_address_max  # of these, under way from one address; where nobody logs in
    int64_t pending_reads_max  # per loop, waiting for the disk
    int64_t pending_per_connection_max  # without an answer, long polls aside
    int64_t adds_in_progress_max  # per loop: its connections are not read meanwhile; 0: any number
    int64_t reads_in_progress_max
    int64_t throttle_ns
    int64_t spin_ns
    bint nodelay
    bint keepalive
    uint8_t auth             # AuthState of a new connection
    bint authenticate        # whoever is encrypted must log in still
    bint tls_required        # in clear nothing is served but START_TLS
    bint clear_login         # AUTH in clear behind START_TLS, and what was proven in clear, count inside
    int linger_s             # -1: off
    int64_t unauthenticated_ns  # 0: for ever
    int64_t idle_ns          # 0: for ever
    Addresses addresses
    PollLimits polls
    int64_t output_bytes
    int64_t waiting_bytes    # answers that wait for their peers, copied or not, and what the read pool will bring them
    int64_t input_bytes
    int64_t early_bytes      # of these, of connections that are WAITING
    int64_t connections
    int64_t revocations      # of users; a loop that has seen fewer looks for their connections

cdef class PortLimits:
    cdef NetLimits limits
