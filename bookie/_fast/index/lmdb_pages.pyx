"""Pages of LMDB 0.9, little-endian, with the layout of its mdb.c (struct MDB_meta, MDB_page, MDB_node, MDB_db)."""
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memcpy, memset
from posix.types cimport off_t
from posix.unistd cimport pread

from bookie._fast.base.planted cimport PLANT_OLD_META_JUDGED, bk_planted
from bookie._fast.base.types cimport CORRUPT, IO_ERROR, NO_MEMORY, OK, Status

cdef enum:
    FLAG_BRANCH = 1
    FLAG_LEAF = 2
    FLAG_OVERFLOW = 4
    FLAG_META = 8
    BY_NUMBER = 8                # the flag of a tree whose keys are numbers; other flags are never set here
    NODE_HEAD_BYTES = 8
    LMDB_MAGIC = 0xBEEFC0DE
    LMDB_VERSION = 1
    PAGE_BYTES_LEAST = 512
    PAGE_UNITS_MOST = 0x8000     # units of two bytes in the largest page; nodes are aligned to them

    # Offsets in a page.
    AT_FLAGS = 10
    AT_LOWER = 12
    AT_UPPER = 14
    AT_PAGES = 12                # number of overflow pages, u32
    # Offsets in a meta page.
    AT_MAGIC = 16
    AT_FORMAT = 20
    AT_MAP_BYTES = 32
    AT_FREE = 40
    AT_MAIN = 88
    AT_LAST = 136
    AT_TRANSACTION = 144


cdef inline uint16_t u16(const uint8_t* at) noexcept nogil:
    cdef uint16_t v
    memcpy(&v, at, 2)
    return v


cdef inline uint32_t u32(const uint8_t* at) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, at, 4)
    return v


cdef inline uint64_t u64(const uint8_t* at) noexcept nogil:
    cdef uint64_t v
    memcpy(&v, at, 8)
    return v


cdef Status read_at(int fd, void* data, size_t size, uint64_t offset) noexcept nogil:
    """Read exactly `size` bytes. CORRUPT if the file is too short."""
    cdef size_t done = 0
    cdef ssize_t got
    while done < size:
        got = pread(fd, <uint8_t*> data + done, size - done, <off_t> (offset + done))
        if got < 0:
            return IO_ERROR
        if got == 0:
            return CORRUPT
        done += <size_t> got
    return OK


# --- meta pages ---

cdef void tree_at(const uint8_t* at, bint by_number, Tree* tree) noexcept nogil:
    tree.pad = u32(at)
    tree.flags = u16(at + 4)
    tree.depth = u16(at + 6)
    tree.pages = u64(at + 8) + u64(at + 16) + u64(at + 24)
    tree.entries = u64(at + 32)
    tree.root = u64(at + 40)
    tree.by_number = by_number


cdef bint tree_fits(const Tree* tree, uint64_t last) noexcept nogil:
    if tree.flags != (BY_NUMBER if tree.by_number else 0) or (tree.pad and not tree.by_number):
        return False
    if tree.root == <uint64_t> NO_PAGE:
        return tree.depth == 0 and tree.entries == 0 and tree.pages == 0
    return 2 <= tree.root <= last and 0 < tree.depth <= TREE_DEPTH_MOST and tree.entries > 0


cdef Status meta_parse(const uint8_t* raw, Meta* meta) noexcept nogil:
    if u16(raw + AT_FLAGS) != FLAG_META or u32(raw + AT_MAGIC) != LMDB_MAGIC or u32(raw + AT_FORMAT) != LMDB_VERSION:
        return CORRUPT
    meta.page_bytes = u32(raw + AT_FREE)
    meta.map_bytes = u64(raw + AT_MAP_BYTES)
    meta.last = u64(raw + AT_LAST)
    meta.transaction = u64(raw + AT_TRANSACTION)
    if not PAGE_BYTES_LEAST <= meta.page_bytes <= PAGE_BYTES_MOST or meta.page_bytes & (meta.page_bytes - 1):
        return CORRUPT
    tree_at(raw + AT_FREE, True, &meta.free)
    tree_at(raw + AT_MAIN, False, &meta.main)
    if bk_planted(PLANT_OLD_META_JUDGED) and (meta.last < 1 or not tree_fits(&meta.main, meta.last)):
        return CORRUPT
    return OK


cdef Status meta_newest(int fd, Meta* meta) noexcept nogil:
    cdef uint8_t[PAGE_HEAD_BYTES + META_BYTES] raw
    cdef Meta other
    cdef uint64_t older_last
    cdef Status status = read_at(fd, raw, sizeof(raw), 0)
    if status == OK:
        status = meta_parse(raw, meta)
    if status == OK:
        status = read_at(fd, raw, sizeof(raw), meta.page_bytes)
    if status == OK:
        status = meta_parse(raw, &other)
    if status != OK:
        return status
    # Commit n writes meta page n & 1; a new file has 0 in both.
    if meta.page_bytes != other.page_bytes or (meta.transaction and meta.transaction & 1) \
            or (other.transaction and not other.transaction & 1):
        return CORRUPT
    if meta.transaction + 1 != other.transaction and other.transaction + 1 != meta.transaction \
            and (meta.transaction or other.transaction):
        return CORRUPT
    if other.transaction > meta.transaction:
        older_last = meta.last
        meta[0] = other
    else:
        older_last = other.last
    # Only of the newest: when the write of a meta page fails, LMDB leaves new trees there under the old transaction.
    if meta.last < 1 or not tree_fits(&meta.free, meta.last) or not tree_fits(&meta.main, meta.last):
        return CORRUPT
    # A file only grows, and within its map.
    return OK if older_last <= meta.last < meta.map_bytes // meta.page_bytes else CORRUPT


cdef Status table_parse(const Node* node, Tree* tree) noexcept nogil:
    if node.flags != NODE_TABLE or node.value_size != TABLE_BYTES:
        return CORRUPT
    tree_at(node.value, False, tree)
    return CORRUPT if tree.pad or tree.flags else OK


# --- pages of trees ---

cdef Status page_read(const PageFile* file, uint64_t number, bint by_number, uint8_t* page) noexcept nogil:
    cdef Status status
    if number < 2 or number > file.last:
        return CORRUPT
    status = read_at(file.fd, page, file.page_bytes, number * file.page_bytes)
    return status if status != OK else page_check(page, file.page_bytes, number, file.last, by_number)


cdef bint page_is_branch(const uint8_t* page) noexcept nogil:
    return u16(page + AT_FLAGS) == FLAG_BRANCH


cdef uint32_t page_count(const uint8_t* page) noexcept nogil:
    return (<uint32_t> u16(page + AT_LOWER) - PAGE_HEAD_BYTES) // 2


cdef void page_node(const uint8_t* page, uint32_t index, Node* node) noexcept nogil:
    cdef const uint8_t* at = page + u16(page + PAGE_HEAD_BYTES + 2 * index)
    node.key = at + NODE_HEAD_BYTES
    node.key_size = u16(at + 6)
    node.value = NULL
    if page_is_branch(page):
        node.flags = 0
        node.value_size = 0
        node.child = u16(at) | <uint64_t> u16(at + 2) << 16 | <uint64_t> u16(at + 4) << 32
        return
    node.flags = u16(at + 4)
    node.value_size = u16(at) | <uint32_t> u16(at + 2) << 16
    if node.flags & NODE_BIG:
        node.child = u64(node.key + node.key_size)
    else:
        node.child = 0
        node.value = node.key + node.key_size


cdef uint32_t node_bytes(const uint8_t* at, bint branch) noexcept nogil:
    """Return the size of a node, at least that of its header."""
    cdef uint32_t size = NODE_HEAD_BYTES + <uint32_t> u16(at + 6)
    cdef uint32_t value
    if not branch:
        value = u16(at) | <uint32_t> u16(at + 2) << 16
        size += 8 if u16(at + 4) & NODE_BIG else min(value, <uint32_t> PAGE_BYTES_MOST)
    return (size + 1) & ~<uint32_t> 1


cdef int key_order(const uint8_t* a, uint32_t a_size, const uint8_t* b, uint32_t b_size, bint by_number) noexcept nogil:
    cdef int order
    cdef uint64_t left, right
    if by_number:
        left = u64(a)
        right = u64(b)
        return -1 if left < right else 1 if left > right else 0
    order = memcmp(a, b, min(a_size, b_size))
    return order if order else <int> a_size - <int> b_size


cdef bint in_order(const uint8_t* page, uint32_t count, bint by_number) noexcept nogil:
    """Return whether the keys ascend. The first key of a branch stands for all lower ones, and may be empty."""
    cdef Node before, node
    cdef uint32_t first = 1 if page_is_branch(page) else 0
    cdef uint32_t i
    page_node(page, first, &before)
    if by_number and before.key_size != 8:
        return False
    for i in range(first + 1, count):
        page_node(page, i, &node)
        if by_number and node.key_size != 8:
            return False
        if key_order(before.key, before.key_size, node.key, node.key_size, by_number) >= 0:
            return False
        before = node
    return True


cdef Status page_check(const uint8_t* page, uint32_t page_bytes, uint64_t number, uint64_t last,
                       bint by_number) noexcept nogil:
    cdef uint8_t[PAGE_UNITS_MOST] taken
    cdef uint16_t flags = u16(page + AT_FLAGS)
    cdef uint32_t lower = u16(page + AT_LOWER)
    cdef uint32_t upper = u16(page + AT_UPPER)
    cdef bint branch = flags == FLAG_BRANCH
    cdef uint32_t count, at, size, i
    cdef uint32_t total = 0
    cdef Node node
    if u64(page) != number or (not branch and flags != FLAG_LEAF) or lower & 1 or upper & 1:
        return CORRUPT
    if not PAGE_HEAD_BYTES < lower <= upper <= page_bytes:
        return CORRUPT
    count = (lower - PAGE_HEAD_BYTES) // 2
    if branch and count < 2:
        return CORRUPT
    memset(taken, 0, page_bytes // 2)
    for i in range(count):
        at = u16(page + PAGE_HEAD_BYTES + 2 * i)
        if at & 1 or at < upper or at > page_bytes - NODE_HEAD_BYTES:
            return CORRUPT
        size = node_bytes(page + at, branch)
        if size > page_bytes - at:
            return CORRUPT
        if memchr(taken + at // 2, 1, size // 2) != NULL:
            return CORRUPT
        memset(taken + at // 2, 1, size // 2)
        total += size
        page_node(page, i, &node)
        if branch and not 2 <= node.child <= last:
            return CORRUPT
        if node.flags & ~(NODE_BIG | NODE_TABLE) or (node.flags & NODE_BIG and not 2 <= node.child <= last):
            return CORRUPT
    return OK if total == page_bytes - upper and in_order(page, count, by_number) else CORRUPT


cdef bint page_within(const uint8_t* page, const Node* low, const Node* high, bint by_number) noexcept nogil:
    """Return whether a page's keys lie in [low, high); the first key of a branch does not count."""
    cdef uint32_t first = 1 if page_is_branch(page) else 0
    cdef Node node
    page_node(page, first, &node)
    if low != NULL and key_order(node.key, node.key_size, low.key, low.key_size, by_number) < 0:
        return False
    page_node(page, page_count(page) - 1, &node)
    return high == NULL or key_order(node.key, node.key_size, high.key, high.key_size, by_number) < 0


# --- values on pages of their own ---

cdef uint64_t big_pages(const PageFile* file, uint32_t size) noexcept nogil:
    return (<uint64_t> PAGE_HEAD_BYTES - 1 + size) // file.page_bytes + 1


cdef Status big_check(const PageFile* file, const Node* node) noexcept nogil:
    cdef uint8_t[PAGE_HEAD_BYTES] head
    cdef uint64_t pages = big_pages(file, node.value_size)
    cdef Status status
    if node.child < 2 or node.child > file.last or pages > file.last - node.child + 1:
        return CORRUPT
    status = read_at(file.fd, head, PAGE_HEAD_BYTES, node.child * file.page_bytes)
    if status != OK:
        return status
    if u64(head) != node.child or u16(head + AT_FLAGS) != FLAG_OVERFLOW or u32(head + AT_PAGES) != pages:
        return CORRUPT
    return OK


cdef uint8_t* big_read(const PageFile* file, const Node* node, Status* status) noexcept nogil:
    cdef uint8_t* value
    status[0] = big_check(file, node)
    if status[0] != OK:
        return NULL
    value = <uint8_t*> malloc(node.value_size)
    if value == NULL:
        status[0] = NO_MEMORY
        return NULL
    status[0] = read_at(file.fd, value, node.value_size, node.child * file.page_bytes + PAGE_HEAD_BYTES)
    if status[0] != OK:
        free(value)
        return NULL
    return value
