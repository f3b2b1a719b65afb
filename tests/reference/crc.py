"""CRC32C and CRC32 bit by bit: the slow oracle of `bookie._fast.base.crc`."""

CASTAGNOLI = 0x82F63B78
IEEE = 0xEDB88320


def crc(polynomial: int, data: bytes, value: int = 0) -> int:
    """Return the reflected CRC of `data`, continuing `value`."""
    value ^= 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
    return value ^ 0xFFFFFFFF
