"""C types of the classes of events.py, for tests/engine/compiled.py."""

cdef class Invocation:
    cdef public object number, op, ledger, entry, at_ns
    cdef public int client
    cdef public bytes body


cdef class Recorder:
    cdef object _now, _record
    cdef long long _next
