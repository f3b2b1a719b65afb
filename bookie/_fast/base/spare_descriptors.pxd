"""Descriptors that no connection gets: kept open on nothing, and given up one by one for what storage opens.

Any thread. A process has none of them until it calls `keep`. Between giving one up and opening the file whoever accepts
connections may take its number; the next one is given up then. What storage closes takes the place of a missing one.
"""

# Whether there was one, closed now: the number is free for what is opened next.
cdef bint spare_give_up() noexcept nogil
# Whether `fd` was closed to become one of them, for one that was given up; False: it is untouched, close it.
cdef bint spare_become(int fd) noexcept nogil
# Open as many as are missing, while the process gets them.
cdef void spares_fill() noexcept nogil
