"""Blocks of memory with a short list of spare ones, which only threads that hold the GIL use."""
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdlib cimport free, malloc

cdef enum:
    SPARES_MAX = 8
    ROUND_BYTES = 64 << 10

cdef struct Spare:
    uint8_t* data
    size_t capacity

cdef Spare spares[SPARES_MAX]
cdef int spare_count = 0
cdef size_t spare_bytes = 0


cdef uint8_t* take_spare(size_t size, size_t* capacity) noexcept:
    """Return a spare block that holds `size` bytes and is not four times as large, or NULL."""
    global spare_count, spare_bytes
    cdef int k
    cdef uint8_t* data
    for k in range(spare_count - 1, -1, -1):
        if size <= spares[k].capacity <= 4 * size:
            data, capacity[0] = spares[k].data, spares[k].capacity
            spare_count -= 1
            spare_bytes -= capacity[0]
            spares[k] = spares[spare_count]
            return data
    return NULL


cdef AnswerMemory answer_memory(size_t size):
    cdef AnswerMemory memory = AnswerMemory.__new__(AnswerMemory)
    size = max(size, <size_t> ANSWER_BYTES_MIN)
    memory.data = take_spare(size, &memory.capacity)
    if memory.data == NULL:
        size = (size + ROUND_BYTES - 1) & ~(<size_t> ROUND_BYTES - 1)
        memory.data = <uint8_t*> malloc(size)
        if memory.data == NULL:
            raise MemoryError(f"no memory for a response of {size} bytes")
        memory.capacity = size
    return memory


cdef class AnswerMemory:
    """The memory of one response."""

    def __dealloc__(self):
        global spare_count, spare_bytes
        if self.data == NULL:
            return
        if spare_count < SPARES_MAX and spare_bytes + self.capacity <= SPARE_BYTES_MAX:
            spares[spare_count].data, spares[spare_count].capacity = self.data, self.capacity
            spare_count += 1
            spare_bytes += self.capacity
        else:
            free(self.data)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t> self.capacity, 1, flags)
