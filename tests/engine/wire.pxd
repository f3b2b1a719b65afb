"""C types of the classes of wire.py, for tests/engine/compiled.py."""

cdef class Answer:
    cdef public tuple key, entries
    cdef public int code


cdef class Frames:
    cdef bytearray _held
