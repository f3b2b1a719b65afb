"""Whose requests an I/O loop serves next: the state of each connection, and the loop's lines. State only; see `turns`.

Work is counted in bytes: those of requests and responses, and REQUEST_COST for each request.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum Line:
    LINE_NONE = 0
    LINE_FRESH = 1           # it had nothing to do until now
    LINE_BUSY = 2            # it has more to do than its last turn allowed
    LINE_STALLED = 3         # its next request waits for room
    LINES = 4

cdef struct Turn:
    void* next               # the next Conn in the line
    uint8_t line             # a Line
    bint more                # its socket may have more than was received last
    uint32_t take            # bytes to receive at a time; 0 if nothing is known yet
    int64_t credit           # what may still be done in its turn; negative: a debt, paid by its next turns
    int64_t written          # bytes of all its responses
    int64_t charged          # the part of them that `credit` accounts for
    int64_t calms            # Turns.calms when its credit was set: a debt ends when the loop has nothing to do

cdef struct Queue:
    void* first
    void* last
    int64_t count

cdef struct Turns:
    Queue lines[LINES]
    int64_t calms            # how often all lines were empty
