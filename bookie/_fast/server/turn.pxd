"""Whose requests an I/O loop serves next: what it keeps of each connection, and its lines. State only: see `turns`.

Work is counted in bytes: those of requests and answers, and REQUEST_COST for each request.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum Line:
    LINE_NONE = 0
    LINE_FRESH = 1           # had nothing to do until now
    LINE_BUSY = 2            # has more to do than its last turn allowed
    LINE_STALLED = 3         # its next request waits for room
    LINES = 4

cdef struct Turn:
    void* next               # the Conn behind this one
    uint8_t line             # a Line
    bint more                # its socket may hold more than was received last
    uint32_t take            # bytes to receive at a time; 0: nothing is known yet
    int64_t credit           # what may still be done in its turn; negative: a debt, which its next turns pay
    int64_t written          # bytes of its answers, ever
    int64_t charged          # of these, what `credit` knows of
    int64_t calms            # Turns.calms when its credit was counted: a debt ends when the loop has nothing to do

cdef struct Queue:
    void* first
    void* last
    int64_t count

cdef struct Turns:
    Queue lines[LINES]
    int64_t calms            # times that all lines were empty
