"""V3 requests out of frames, and V3's codes. No sockets, no allocation; any thread.

The messages are those of proto/bookie/pb/wire.proto; module `wire.v3_answers` writes what is answered.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from bookie._fast.base.types cimport Status
from bookie._fast.wire.request cimport ADD_ENTRY, AUTH, READ_ENTRY, WRITE_CLOSE, Request

cdef enum:
    V3_VERSION = 3
    V3_HEADER_FIELD = 1
    V3_FIRST_FIELD = 100         # of the operations' messages, in requests as in answers

cdef inline uint32_t v3_field(uint8_t op) noexcept nogil:
    """The field of an operation's message; 0: nobody serves it."""
    if op == READ_ENTRY or op == ADD_ENTRY:
        return V3_FIRST_FIELD - READ_ENTRY + op
    if op >= AUTH and op <= WRITE_CLOSE:
        return V3_FIRST_FIELD + 2 - AUTH + op
    return 0

# The message in `frame`, as the protobuf library sees it:
#   OK           fields of the operation's own message are set. For ADD_ENTRY `ledger` and `entry` are those to answer
#                with; those to store lie in `body`, whose size is not judged. AUTH without `body`: its message came in
#                pieces, the protobuf library puts them together.
#   BAD_REQUEST  the message of its operation is absent, or nobody serves it: `v3_refusal`. The header is set.
#   CORRUPT      no V3 request. Nothing is set.
# No version is judged. `nesting`: so many groups within each other, its message among them, are let pass; the library
# lets NESTING_MAX pass.
cdef Status v3_parse(const uint8_t* frame, uint32_t size, uint32_t nesting, Request* request) noexcept nogil

# The StatusCode of a Status.
cdef int32_t v3_code(Status status) noexcept nogil
