"""Spare file descriptors, reserved for storage: closed one by one when the process runs out of descriptors.

They are open on /dev/null, so that connections cannot use them up. Any thread. A process has none until it calls
`keep`. Between closing a spare and opening the file, an accepting thread may take the free number; then the next
spare is closed. A descriptor that storage closes becomes a spare again if one is missing.
"""

# Close a spare, which frees its number for the next open. Return False if there is none.
cdef bint spare_give_up() noexcept nogil
# Turn `fd` into a spare if one is missing. Return False if `fd` is untouched and the caller has to close it.
cdef bint spare_become(int fd) noexcept nogil
# Open the spares that are missing, as far as the process may open descriptors.
cdef void spares_fill() noexcept nogil
