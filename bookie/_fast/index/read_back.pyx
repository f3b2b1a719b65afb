"""Both trees are read level by level, without the pages that they share, and with them everything below these."""
from libc.stdint cimport INT64_MAX
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from bookie._fast.base.cursor cimport load_i64, load_u32
from bookie._fast.base.types cimport CORRUPT, NO_MEMORY, OK
from bookie._fast.index.codec cimport LEDGER_KEY_BYTES
from bookie._fast.index.lmdb_pages cimport (
    NODE_BIG,
    NO_PAGE,
    TREE_DEPTH_MOST,
    Node,
    big_read,
    page_count,
    page_is_branch,
    page_node,
    page_read_loosely,
)

cdef enum:
    BEFORE = 0
    AFTER = 1

cdef struct Pages:
    # Pages of one tree and one level that the other tree lacks.
    uint64_t* numbers
    size_t count
    size_t room
    uint32_t level               # 1 for leaves; 0: the tree is empty

cdef struct Reading:
    const PageFile* file
    Pages[2] trees
    uint8_t* marked              # a bit for each page
    uint8_t* page


cdef uint64_t value_sum(const uint8_t* value, size_t size) noexcept nogil:
    return load_u32(value) if size >= 4 else 0


cdef Status add(Pages* pages, uint64_t number) noexcept nogil:
    cdef size_t room = 2 * pages.room + 64
    cdef uint64_t* grown
    if pages.count == pages.room:
        grown = <uint64_t*> realloc(pages.numbers, room * sizeof(uint64_t))
        if grown == NULL:
            return NO_MEMORY
        pages.numbers = grown
        pages.room = room
    pages.numbers[pages.count] = number
    pages.count += 1
    return OK


cdef Status begin(Pages* pages, const Tree* tree) noexcept nogil:
    memset(pages, 0, sizeof(Pages))
    if tree.root == <uint64_t> NO_PAGE:
        return OK
    if tree.depth == 0 or tree.depth > TREE_DEPTH_MOST:
        return CORRUPT
    pages.level = tree.depth
    return add(pages, tree.root)


cdef inline bint take_mark(Reading* reading, uint64_t number) noexcept nogil:
    """Return whether a page is marked, and unmark it. A checked branch names no page behind the end of the file."""
    cdef uint8_t bit = <uint8_t> (1 << (number & 7))
    cdef bint marked = reading.marked[number >> 3] & bit != 0
    reading.marked[number >> 3] &= ~bit
    return marked


cdef Status read(Reading* reading, uint64_t number, uint32_t level) noexcept nogil:
    cdef Status status = page_read_loosely(reading.file, number, reading.page)
    return status if status != OK else OK if page_is_branch(reading.page) == (level > 1) else CORRUPT


cdef Status mark_below(Reading* reading, const Pages* pages) noexcept nogil:
    """Mark all children of these branches."""
    cdef Node node
    cdef size_t i
    cdef uint32_t j
    cdef Status status = OK
    for i in range(pages.count):
        status = read(reading, pages.numbers[i], pages.level)
        if status != OK:
            return status
        for j in range(page_count(reading.page)):
            page_node(reading.page, j, &node)
            reading.marked[node.child >> 3] |= <uint8_t> (1 << (node.child & 7))
    return OK


cdef Status go_down(Reading* reading, Pages* pages, bint marked) noexcept nogil:
    """Replace branches by those of their children that are marked, or those that are not; none is marked then."""
    cdef Pages above = pages[0]
    cdef Node node
    cdef size_t i
    cdef uint32_t j
    cdef Status status = OK
    memset(pages, 0, sizeof(Pages))
    pages.level = above.level - 1
    for i in range(above.count):
        if status == OK:
            status = read(reading, above.numbers[i], above.level)
        for j in range(page_count(reading.page) if status == OK else 0):
            page_node(reading.page, j, &node)
            if status == OK and take_mark(reading, node.child) == marked:
                status = add(pages, node.child)
    free(above.numbers)
    return status


cdef Status go_down_both(Reading* reading) noexcept nogil:
    """Go down in both trees, without the pages that both have."""
    cdef Status status = mark_below(reading, &reading.trees[BEFORE])
    if status == OK:
        status = go_down(reading, &reading.trees[AFTER], False)     # this leaves the marks of the others
    return status if status != OK else go_down(reading, &reading.trees[BEFORE], True)


cdef Status sum_leaves(Reading* reading, const Pages* pages, bint less, Difference* found) noexcept nogil:
    cdef Node node
    cdef const uint8_t* value
    cdef uint8_t* big
    cdef uint64_t total = 0
    cdef size_t i
    cdef uint32_t j
    cdef Status status = OK
    for i in range(pages.count):
        status = read(reading, pages.numbers[i], 1)
        if status != OK:
            return status
        for j in range(page_count(reading.page)):
            page_node(reading.page, j, &node)
            if node.key_size >= LEDGER_KEY_BYTES:               # true for all but the head's
                found.first = min(found.first, load_i64(node.key))
                found.last = max(found.last, load_i64(node.key))
            value = node.value
            big = NULL
            if node.flags & NODE_BIG:
                value = big = big_read(reading.file, &node, &status)
                if big == NULL:
                    return status
            total += value_sum(value, node.value_size)
            free(big)
    found.gained += -total if less else total
    return OK


cdef Status compare(Reading* reading, Difference* found) noexcept nogil:
    cdef Pages* before = &reading.trees[BEFORE]
    cdef Pages* after = &reading.trees[AFTER]
    cdef Status status = OK
    while status == OK and max(before.level, after.level) > 1:
        if before.level == after.level:
            status = go_down_both(reading)
        else:
            status = go_down(reading, before if before.level > after.level else after, False)
    if status == OK:
        status = sum_leaves(reading, before, True, found)
    return status if status != OK else sum_leaves(reading, after, False, found)


cdef Status tree_difference(const PageFile* file, const Tree* before, const Tree* after,
                            Difference* found) noexcept nogil:
    cdef Reading reading
    cdef Status status = NO_MEMORY
    found.gained = 0
    found.first, found.last = INT64_MAX, -1
    if before.root == after.root:
        return OK
    memset(&reading, 0, sizeof(Reading))
    reading.file = file
    reading.marked = <uint8_t*> calloc(file.last // 8 + 1, 1)
    reading.page = <uint8_t*> malloc(file.page_bytes)
    if reading.marked != NULL and reading.page != NULL:
        status = begin(&reading.trees[BEFORE], before)
    if status == OK:
        status = begin(&reading.trees[AFTER], after)
    if status == OK:
        status = compare(&reading, found)
    free(reading.trees[BEFORE].numbers)
    free(reading.trees[AFTER].numbers)
    free(reading.marked)
    free(reading.page)
    return status
