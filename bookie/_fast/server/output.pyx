"""Sends responses, and keeps the list of connections that have any. Runs on the loop's thread."""
from libc.stdint cimport uint64_t

from bookie._fast.server.connection cimport conn_flush


cdef Status flush(IoLoop* loop, Conn* conn) noexcept nogil:
    cdef uint64_t before = conn.pending
    cdef Status status = conn_flush(conn)
    if conn.pending < before:
        loop.stats.bytes_out += before - conn.pending
        conn.active_ns = loop.now
    if conn.pending == 0 and conn.sealed == 0:
        conn.stuck_ns = 0
    elif conn.pending < before or conn.stuck_ns == 0:
        conn.stuck_ns = loop.now
    return status


cdef void mark_dirty(IoLoop* loop, Conn* conn) noexcept nogil:
    if not conn.dirty:
        conn.dirty = True
        conn.next_dirty = loop.dirty
        loop.dirty = conn
