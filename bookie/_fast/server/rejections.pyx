"""Counts of (address, reason) that an I/O loop fills and Python drains, and the words for the reasons."""
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

# For each reason, its label in metrics and what the log says.
_REASONS = {
    BAD_LENGTH: ("bad_length", "a frame's length is impossible"),
    BAD_FRAME: ("bad_frame", "a frame belongs to neither protocol"),
    TOO_MUCH_OUTPUT: ("output_budget", "it does not read its responses"),
    TOO_MUCH_INPUT: ("input_budget", "its unfinished frames exceed the budget of input"),
    TOO_MANY_CONNECTIONS: ("connections", "there are as many connections as serverMaxConnections allows"),
    TOO_MANY_OF_ADDRESS: (
        "connections_of_address",
        "the address has as many connections as serverMaxConnectionsPerAddress allows",
    ),
    TOO_LONG_UNAUTHENTICATED: ("authentication_timeout", "it did not authenticate in time"),
    TOO_LONG_IDLE: ("idle", "it was idle for too long"),
    BAD_HANDSHAKE: ("tls_handshake", "its TLS handshake failed"),
    TOO_LONG_HANDSHAKE: ("tls_handshake_timeout", "its TLS handshake took longer than tlsHandshakeTimeoutMs"),
    TOO_MANY_HANDSHAKES: ("tls_handshakes", "there are as many TLS handshakes as tlsHandshakesMax allows"),
    CLEAR_AFTER_TLS: ("clear_bytes_behind_tls", "it sent bytes in clear after START_TLS"),
    TOO_SLOW: (
        "slow_reader",
        "it read its responses more slowly than others, and serverMaxOutputMemorySizeMb is used up",
    ),
    TOO_MANY_LOGINS: (
        "logins",
        "as many logins are in progress as maxPendingPolicyRequests and policyQueueSizeMb allow",
    ),
    TOO_LONG_LOGIN: ("login_length", "a frame before its login is longer than authMessageSizeMax"),
    EARLY_TLS: ("early_start_tls", "it sent START_TLS while requests were in progress"),
    EARLY_BATCH: ("early_batch", "it sent a V2 batch read before it was authenticated"),
    OUT_OF_MEMORY: ("memory", "the bookie is out of memory"),
    IN_CLEAR: ("clear_request", "it sent a request or a login in clear, and tlsRequired is set"),
    OTHER_PLUGIN: ("other_plugin", "it repeatedly tried to log in with a plugin that is not configured"),
    REVOKED: ("revoked", "its user was revoked"),
    TOO_MANY_HANDSHAKES_OF_ADDRESS: (
        "tls_handshakes_of_address",
        "the address has as many TLS handshakes as tlsHandshakesMaxPerAddress allows",
    ),
}

REASON_WORDS = tuple(_REASONS[at][0] for at in range(REASONS))
REASON_TEXTS = tuple(_REASONS[at][1] for at in range(REASONS))
UNNAMED = "too many addresses to list"


cdef void rejections_init(Rejections* rejections) noexcept nogil:
    memset(rejections, 0, sizeof(Rejections))
    pthread_mutex_init(&rejections.lock, NULL)


cdef void reject(Rejections* rejections, const uint8_t* ip, Reason reason) noexcept nogil:
    cdef int64_t i
    cdef Rejection* row
    bk_add_relaxed(&rejections.totals[<int> reason], 1)
    pthread_mutex_lock(&rejections.lock)
    for i in range(rejections.count):
        row = &rejections.rows[i]
        if row.reason == reason and memcmp(row.ip, ip, ADDRESS_BYTES) == 0:
            row.count += 1
            pthread_mutex_unlock(&rejections.lock)
            return
    if rejections.count < REJECTIONS_MOST:
        row = &rejections.rows[rejections.count]
        memcpy(row.ip, ip, ADDRESS_BYTES)
        row.reason = reason
        row.count = 1
        bk_store(&rejections.count, rejections.count + 1)
    else:
        rejections.lost += 1
    pthread_mutex_unlock(&rejections.lock)


cdef list rejections_drain(Rejections* rejections):
    cdef Rejection rows[REJECTIONS_MOST]
    cdef int64_t i, count, lost
    if bk_load(&rejections.count) == 0:
        return []
    with nogil:
        pthread_mutex_lock(&rejections.lock)
        count = rejections.count
        lost = rejections.lost
        memcpy(rows, rejections.rows, count * sizeof(Rejection))
        rejections.count = rejections.lost = 0
        pthread_mutex_unlock(&rejections.lock)
    found = [(<bytes> (<const char*> rows[i].ip)[:ADDRESS_BYTES], rows[i].reason, rows[i].count) for i in range(count)]
    if lost:
        found.append((bytes(ADDRESS_BYTES), REASONS, lost))
    return found
