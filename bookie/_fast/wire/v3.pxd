"""Parsing of V3 requests, and V3's status codes. No sockets, no allocation; any thread.

The messages are those of proto/bookie/pb/wire.proto; module `wire.v3_answers` writes the responses.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.request cimport ADD_ENTRY, AUTH, READ_ENTRY, WRITE_CLOSE, Request

cdef enum:
    V3_VERSION = 3
    V3_FIRST_BYTE = 0x08         # a protobuf message begins with at least this, and no V2 client sends so much
    V3_HEADER_FIELD = 1
    V3_FIRST_FIELD = 100         # of the operations' messages, in requests and responses

cdef inline uint32_t v3_field(uint8_t op) noexcept nogil:
    """Return the field number of an operation's message, or 0 if the operation is not served."""
    if op == READ_ENTRY or op == ADD_ENTRY:
        return V3_FIRST_FIELD - READ_ENTRY + op
    if op >= AUTH and op <= WRITE_CLOSE:
        return V3_FIRST_FIELD + 2 - AUTH + op
    return 0

# Parse the message in `frame` with the same result as the protobuf library:
#   OK           the fields of the operation's message are set. For ADD_ENTRY, `ledger` and `entry` are the ids for the
#                response; the ids to store are in `body`, whose size is not checked. AUTH without `body`: its message
#                came in several pieces, which the protobuf library has to merge.
#   BAD_REQUEST  the operation is not served, or its message is missing: send `v3_refusal`. The header is set.
#   CORRUPT      not a V3 request. Nothing is set.
# The version is not checked. `nesting` limits the depth of groups, counting the message that holds them; the
# library's limit is NESTING_MAX.
cdef Status v3_parse(const uint8_t* frame, uint32_t size, uint32_t nesting, Request* request) noexcept nogil

# Return the StatusCode of a Status.
cdef int32_t v3_code(Status status) noexcept nogil
