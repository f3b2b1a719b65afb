"""Opening a file whose path comes from Python, with errors that name it."""
import os

from posix.fcntl cimport O_RDONLY

cdef extern from "<fcntl.h>" nogil:
    int O_CLOEXEC


cdef int open_to_read(FileOps* ops, object path) except -1:
    encoded = os.fsencode(path)
    cdef int fd = ops.open(<const char*> encoded, O_RDONLY | O_CLOEXEC, 0)
    if fd < 0:
        raise OSError(-fd, os.strerror(-fd), os.fspath(path))
    return fd
