"""A small table of (address, reason, times) that its loop fills and Python empties."""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from bookie._fast.base.sync cimport (
    bk_add_relaxed,
    bk_load,
    bk_store,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)

REASONS_SPOKEN = (
    "a frame's length is impossible",
    "a frame is of neither protocol",
    "it does not read its answers",
    "its unfinished frames exceed the budget of input",
    "there are as many connections as serverMaxConnections allows",
    "the address has as many connections as serverMaxConnectionsPerAddress allows",
    "it did not authenticate in time",
    "it was idle for too long",
    "its TLS handshake failed",
    "its TLS handshake took longer than tlsHandshakeTimeoutMs",
    "there are as many TLS handshakes as tlsHandshakesMax allows",
    "it sent clear bytes behind START_TLS",
    "it read its answers more slowly than others, and serverMaxOutputMemorySizeMb is used up",
    "there are as many logins under way as maxPendingPolicyRequests and policyQueueSizeMb allow",
    "a frame before its login is longer than authMessageSizeMax",
    "it sent START_TLS while requests were under way",
    "it sent a batch read of V2 before it was authenticated",
    "the bookie is out of memory",
    "it sent a request or a login in clear, and tlsRequired is set",
    "it logged in by a plugin that is not configured, again and again",
    "what let it in was taken back",
    "the address has as many TLS handshakes as tlsHandshakesMaxPerAddress allows",
    "too many addresses at once to name them",
)


cdef void complaints_init(Complaints* complaints) noexcept nogil:
    memset(complaints, 0, sizeof(Complaints))
    pthread_mutex_init(&complaints.lock, NULL)


cdef void complain(Complaints* complaints, const uint8_t* ip, Reason reason) noexcept nogil:
    cdef int64_t i
    cdef Complaint* row
    bk_add_relaxed(&complaints.totals[<int> reason], 1)
    pthread_mutex_lock(&complaints.lock)
    for i in range(complaints.count):
        row = &complaints.rows[i]
        if row.reason == reason and memcmp(row.ip, ip, ADDRESS_BYTES) == 0:
            row.count += 1
            pthread_mutex_unlock(&complaints.lock)
            return
    if complaints.count < COMPLAINTS_MOST:
        row = &complaints.rows[complaints.count]
        memcpy(row.ip, ip, ADDRESS_BYTES)
        row.reason = reason
        row.count = 1
        bk_store(&complaints.count, complaints.count + 1)
    else:
        complaints.lost += 1
    pthread_mutex_unlock(&complaints.lock)


cdef list complaints_drain(Complaints* complaints):
    cdef Complaint rows[COMPLAINTS_MOST]
    cdef int64_t i, count, lost
    if bk_load(&complaints.count) == 0:
        return []
    with nogil:
        pthread_mutex_lock(&complaints.lock)
        count = complaints.count
        lost = complaints.lost
        memcpy(rows, complaints.rows, count * sizeof(Complaint))
        complaints.count = complaints.lost = 0
        pthread_mutex_unlock(&complaints.lock)
    found = [(<bytes> (<const char*> rows[i].ip)[:ADDRESS_BYTES], rows[i].reason, rows[i].count) for i in range(count)]
    if lost:
        found.append((bytes(ADDRESS_BYTES), REASONS, lost))
    return found
