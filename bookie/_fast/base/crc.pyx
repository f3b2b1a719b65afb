"""CRC32C by the processor's instruction if it has one, else by tables; CRC32 by tables.

The implementation is chosen once, at import. Any thread; callers own the data.
"""
from libc.stdint cimport uint32_t

cdef extern from "csrc/crc32c.h" nogil:
    ctypedef uint32_t (*crc_fn)(uint32_t, const void*, size_t) noexcept nogil
    void crc_init() noexcept
    crc_fn crc32c_best
    crc_fn crc32c_hardware() noexcept
    const char* crc32c_hardware_name() noexcept
    uint32_t crc32c_table(uint32_t, const void*, size_t) noexcept
    uint32_t crc32_table(uint32_t, const void*, size_t) noexcept

crc_init()


cdef uint32_t crc32c(uint32_t crc, const void* data, size_t size) noexcept nogil:
    return crc32c_best(crc, data, size)


cdef uint32_t crc32(uint32_t crc, const void* data, size_t size) noexcept nogil:
    return crc32_table(crc, data, size)


cdef uint32_t over(crc_fn function, const unsigned char[::1] data, uint32_t crc) noexcept nogil:
    return function(crc, &data[0] if data.shape[0] else NULL, <size_t> data.shape[0])


def python_crc32c(const unsigned char[::1] data, uint32_t crc=0, str by=""):
    """Return the CRC32C of a contiguous buffer; `crc` continues an earlier value.

    `by` names one of `implementations()`, and is empty for the fastest.
    """
    cdef crc_fn function = crc32c_best
    if by == "table":
        function = crc32c_table
    elif by and by not in implementations():
        raise ValueError(f"no CRC32C implementation {by!r} here; this processor has {', '.join(implementations())}")
    with nogil:
        crc = over(function, data, crc)
    return crc


def python_crc32(const unsigned char[::1] data, uint32_t crc=0):
    """Return the CRC32 (IEEE, as in zlib) of a contiguous buffer; `crc` continues an earlier value."""
    with nogil:
        crc = over(crc32_table, data, crc)
    return crc


def implementation() -> str:
    """Return the name of the CRC32C in use: "sse4.2", "armv8-crc" or "table"."""
    return implementations()[0]


def implementations() -> tuple:
    """Return the names of all CRC32C implementations that this processor can run, the one in use first."""
    if crc32c_hardware() == NULL:
        return ("table",)
    return (crc32c_hardware_name().decode(), "table")


# Cython keeps C and Python functions of a module in one namespace, so the Python functions get their public names
# here.
globals().update(crc32c=python_crc32c, crc32=python_crc32)
