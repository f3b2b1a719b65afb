"""C types of the classes of peers.py, for tests/engine/compiled.py."""

cdef class Connection:
    cdef public object runtime, recorder, protocol
    cdef public int client
    cdef public dict outstanding
    cdef public bint closed
    cdef public str malformed
    cdef object _frames, _unsent, _send, _receive, _now, _sealed
    cdef int _number

    cpdef bint quiet(self, unsigned long long news)
    cpdef send_raw(self, bytes data)
    cpdef push(self)
    cpdef list receive(self, long long most=*)
    cpdef ignore(self)
    cdef _take(self, bytes body, list found)


cdef class Peer:
    cdef public object plan
    cdef public long long due
    cdef public str refused
    cdef object _known, _rng, _runtime, _recorder
    cdef str _role
    cdef long long _window, _pause_ns, _sip_bytes, _left, _most
    cdef bint _free, _raw, _slow
    cdef int _client
    cdef Connection _connection

    cpdef long long waiting(self)
    cpdef long long oldest_ns(self)
    cpdef bint done(self)
    cpdef bint idle(self, long long now, unsigned long long news)
    cpdef turn(self, long long now)
    cdef _act(self, long long now)
    cdef _answered(self, invocation, answer, long long now)


cdef class Crowd:
    cdef object _news
    cdef list _peers

    cpdef turn(self, long long now)
    cpdef long long waiting(self)
    cpdef bint asking(self)
    cpdef long long due(self)
