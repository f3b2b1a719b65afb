"""Opening a file whose path comes from Python. Any thread, with the GIL."""
from bookie._fast.base.file cimport FileOps

# Open an existing file for reading, and return its descriptor, which the caller closes. OSError if that fails.
cdef int open_to_read(FileOps* ops, object path) except -1
