"""Requests that Python answers: a bounded queue from the I/O loops to a few Python threads, and back.

A loop copies a frame into a job and submits it. Python threads wait in `PolicyRequests.take` without the GIL, and
return each job with a response and an action to the inbox of its loop, which writes the response. Logins and other
requests have backlogs of their own, each with a limit and threads of its own, so that requests that wait for a disk do
not delay logins. A job belongs to its loop until it is submitted, and again once it is collected; nothing else touches
its connection.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.server.users cimport User

cdef enum PolicyKind:
    POLICY_REQUEST = 0
    POLICY_UPGRADED = 1      # the connection is encrypted now; the frame is the peer's certificate (DER) or empty
    POLICY_CLOSED = 2        # a connection with a session is closed and has no other job; it needs no response
    POLICY_CLEAR = 3         # AUTH that came in clear after START_TLS
    POLICY_UPGRADED_KNOWN = 4    # POLICY_UPGRADED of a connection that had authenticated in clear, and is WAITING again

cdef enum PolicyAction:
    POLICY_NOTHING = 0
    POLICY_AUTHENTICATED = 1
    POLICY_CLOSE = 2         # after the response is written
    POLICY_TURN_AWAY = 3     # the same, logged as repeated use of another plugin

cdef enum PolicyBacklogName:
    BACKLOG_LOGINS = 0       # logins, and ends of their sessions
    BACKLOG_REQUESTS = 1
    BACKLOGS = 2

cdef enum:
    SHARE_OF_CONNECTION = 16     # a connection may use 1 / this of the backlog of requests
    PEER_BYTES = 28          # a sockaddr_in6, the longest address of a TCP peer

cdef struct PolicyJob:
    PolicyQueue* queue
    PolicyInbox* inbox
    PolicyJob* next
    void* owner              # the connection, for the loop; returned untouched
    int64_t begun            # monotonic ns of the round in which it came in
    int64_t session          # of the connection, unique while the bookie runs; 0 if it has none
    uint8_t kind
    uint8_t protocol
    uint8_t op
    uint8_t action           # of the response
    uint8_t may              # Rights of the user that it authenticates
    uint8_t backlog
    User* user               # that user, with a reference; NULL for an unnamed one
    uint8_t peer[PEER_BYTES]  # sockaddr of the peer
    uint32_t size            # of the frame's body, which follows the struct
    uint32_t answer_size
    uint8_t* answer          # body of the response frame; NULL for none

cdef struct PolicyInbox:
    # The finished jobs of one loop, oldest first.
    pthread_mutex_t lock
    PolicyJob* head
    PolicyJob* tail
    Waker* waker

cdef struct PolicyBacklog:
    pthread_cond_t filled
    PolicyJob* head
    PolicyJob* tail
    int64_t jobs             # submitted and not freed yet, and the bytes of their frames
    int64_t bytes

cdef struct PolicyQueue:
    pthread_mutex_t lock     # guards everything but `sessions`
    PolicyBacklog backlogs[BACKLOGS]
    int64_t jobs_max         # of a backlog
    int64_t bytes_max
    int64_t frame_bytes_max  # of a message before its sender is authenticated
    int64_t refused
    int64_t served
    int64_t sessions         # atomic; number of the last session
    bint stopping

cdef void policy_inbox_init(PolicyInbox* inbox, Waker* waker) noexcept nogil
# Return a zeroed job with a copy of the frame's `size` bytes, for `policy_submit` or `policy_free`; NULL without
# memory.
cdef PolicyJob* policy_job(const uint8_t* frame, uint32_t size) noexcept nogil
# Submit a job. OK: the inbox will get it. TOO_MANY_REQUESTS: its backlog is full, the caller keeps it. POLICY_CLOSED is
# always accepted, and never comes back.
cdef Status policy_submit(PolicyQueue* queue, PolicyJob* job) noexcept nogil
# Return how many requests of one connection may be in progress.
cdef int64_t policy_share(const PolicyQueue* queue) noexcept nogil
# Return all finished jobs, linked by `next`; the caller frees each.
cdef PolicyJob* policy_collect(PolicyInbox* inbox) noexcept nogil
cdef void policy_free(PolicyJob* job) noexcept nogil

cdef class PolicyRequests:
    cdef PolicyQueue queue
