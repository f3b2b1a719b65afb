"""Requests that Python answers: a bounded queue from the I/O loops to a few Python threads, and back.

A loop copies what it read into a job and submits it. Python threads wait in `PolicyRequests.take` without the GIL, and
give each job back with bytes and an action; it lands in the inbox of the loop that submitted it, which writes the
answer. Logins and requests wait in lanes of their own, each as long as the settings say and with threads of its own:
requests that wait for a disk let everybody log in. A job belongs to its loop until it is submitted and again once it is
collected; nobody else touches its connection.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from bookie._fast.base.sync cimport pthread_cond_t, pthread_mutex_t
from bookie._fast.base.types cimport Status
from bookie._fast.base.waker cimport Waker
from bookie._fast.server.users cimport User

cdef enum PolicyKind:
    POLICY_REQUEST = 0
    POLICY_UPGRADED = 1      # the connection is encrypted now; the frame is the peer's certificate (DER) or empty
    POLICY_CLOSED = 2        # a connection with a session is gone and has no job left; nobody answers this
    POLICY_CLEAR = 3         # AUTH that came in clear behind START_TLS
    POLICY_UPGRADED_KNOWN = 4    # POLICY_UPGRADED of a connection that was authenticated in clear; it is not now

cdef enum PolicyAction:
    POLICY_NOTHING = 0
    POLICY_AUTHENTICATED = 1
    POLICY_CLOSE = 2         # after the answer is written
    POLICY_TURN_AWAY = 3     # the same, and the log tells: another plugin, again and again

cdef enum PolicyLaneName:
    LANE_LOGINS = 0          # and what ends them
    LANE_REQUESTS = 1
    LANES = 2

cdef enum:
    SHARE_OF_CONNECTION = 16     # one connection may have this part of the lane of requests
    PEER_BYTES = 28          # a sockaddr_in6, the longest address that a TCP peer has

cdef struct PolicyJob:
    PolicyQueue* queue
    PolicyInbox* inbox
    PolicyJob* next
    void* owner              # the connection, for the loop; handed back untouched
    int64_t begun            # monotonic ns of the round in which it came in
    int64_t session          # of the connection: unique as long as the bookie runs; 0: it has none
    uint8_t kind
    uint8_t protocol
    uint8_t op
    uint8_t action           # of the answer
    uint8_t may              # Rights of who is authenticated by it
    uint8_t lane
    User* user               # who that is, with a reference; NULL: nobody in particular
    uint8_t peer[PEER_BYTES]  # sockaddr of the peer
    uint32_t size            # of the frame's body, which follows the job
    uint32_t answer_size
    uint8_t* answer          # body of the answering frame; NULL: none

cdef struct PolicyInbox:
    # Finished jobs of one loop, in the order in which they were finished.
    pthread_mutex_t lock
    PolicyJob* head
    PolicyJob* tail
    Waker* waker

cdef struct PolicyLane:
    pthread_cond_t filled
    PolicyJob* head
    PolicyJob* tail
    int64_t jobs             # submitted and not yet freed, and the bytes of their frames
    int64_t bytes

cdef struct PolicyQueue:
    pthread_mutex_t lock     # guards all but `sessions`
    PolicyLane lanes[LANES]
    int64_t jobs_max         # of a lane
    int64_t bytes_max
    int64_t frame_bytes_max  # of a message before its sender is authenticated
    int64_t refused
    int64_t served
    int64_t sessions         # atomic; the number of the last one
    bint stopping

cdef void policy_inbox_init(PolicyInbox* inbox, Waker* waker) noexcept nogil
# A job with a copy of `size` bytes, all else zero; NULL: no memory. It goes to `policy_submit` or `policy_free`.
cdef PolicyJob* policy_job(const uint8_t* frame, uint32_t size) noexcept nogil
# OK: the inbox will get it. TOO_MANY_REQUESTS: its lane is full, the job stays the caller's. POLICY_CLOSED fits
# always, and never comes back.
cdef Status policy_submit(PolicyQueue* queue, PolicyJob* job) noexcept nogil
# How many requests of one connection may be under way.
cdef int64_t policy_share(const PolicyQueue* queue) noexcept nogil
# All finished jobs, linked by `next`; the caller frees each.
cdef PolicyJob* policy_collect(PolicyInbox* inbox) noexcept nogil
cdef void policy_free(PolicyJob* job) noexcept nogil

cdef class PolicyRequests:
    cdef PolicyQueue queue
