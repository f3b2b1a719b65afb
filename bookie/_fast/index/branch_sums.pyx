"""Walks the branch pages of a tree, and reads as few of them as possible. Leaves are not read."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from bookie._fast.base.crc cimport crc32c
from bookie._fast.base.file cimport FileOps, read_full
from bookie._fast.base.sync cimport bk_add
from bookie._fast.base.types cimport CORRUPT, IO_ERROR, NO_MEMORY, OK, Status
from bookie._fast.index.lmdb_pages cimport (
    NO_PAGE,
    TREE_DEPTH_MOST,
    Node,
    PageFile,
    Tree,
    page_check,
    page_count,
    page_is_branch,
    page_node,
)
from bookie._fast.index.lmdb_tree cimport see_page

cdef struct Image:
    int64_t users                # atomic; number of BranchSums that keep it
    uint8_t[8] page              # in fact as large as the file's pages

cdef struct Summing:
    FileOps* ops
    const PageFile* file
    const BranchSums* before
    BranchSums* sums
    uint8_t* seen


cdef BranchSums* sums_of(FileOps* ops, const PageFile* file, const Tree* tree, const BranchSums* before, uint8_t* seen,
                         uint32_t images_most, Status* status) noexcept nogil:
    cdef Summing summing = Summing(ops, file, before, NULL, seen)
    cdef uint8_t* images = NULL
    summing.sums = <BranchSums*> calloc(1, sizeof(BranchSums))
    status[0] = OK if summing.sums != NULL else NO_MEMORY
    if summing.sums != NULL:
        summing.sums.images_most = images_most
    if status[0] == OK and tree.root != <uint64_t> NO_PAGE:
        if tree.depth == 0 or tree.depth > TREE_DEPTH_MOST:
            status[0] = CORRUPT
        else:
            images = <uint8_t*> malloc(<size_t> tree.depth * file.page_bytes)
            status[0] = visit(&summing, tree.root, tree.depth, images) if images != NULL else NO_MEMORY
            free(images)
    if status[0] == OK:
        status[0] = find_by_page(summing.sums)
    if status[0] == OK:
        return summing.sums
    sums_free(summing.sums)
    return NULL


cdef void sums_free(BranchSums* sums) noexcept nogil:
    cdef uint32_t i
    if sums != NULL:
        for i in range(sums.count):
            image_drop(sums.items[i].image)
        free(sums.items)
        free(sums.slots)
        free(sums)


# --- images ---

cdef inline Image* image_of(uint8_t* page) noexcept nogil:
    return <Image*> (page - sizeof(int64_t))


cdef uint8_t* image_keep(BranchSums* sums, const uint8_t* page, uint32_t page_bytes, uint32_t levels) noexcept nogil:
    """Copy a page with `levels` levels, leaves included; return NULL if it is not to be kept or without memory."""
    cdef Image* image
    if sums.images >= sums.images_most and (levels == 2 or sums.images_most == 0):
        return NULL
    image = <Image*> malloc(sizeof(int64_t) + page_bytes)
    if image == NULL:
        return NULL
    image.users = 1
    memcpy(image.page, page, page_bytes)
    sums.images += 1
    return image.page


cdef void image_drop(uint8_t* page) noexcept nogil:
    if page != NULL and bk_add(&image_of(page).users, -1) == 0:
        free(image_of(page))


# --- the walk ---

cdef Status reserve(BranchSums* sums, uint32_t more) noexcept nogil:
    cdef BranchSum* grown
    cdef uint64_t room = sums.room
    if sums.room - sums.count >= more:
        return OK
    room = max(2 * room, <uint64_t> sums.count + more)
    grown = <BranchSum*> realloc(sums.items, room * sizeof(BranchSum))
    if grown == NULL or room > 0x7FFFFFFF:
        return NO_MEMORY
    sums.items = grown
    sums.room = <uint32_t> room
    return OK


cdef Status visit(Summing* summing, uint64_t number, uint32_t levels, uint8_t* image) noexcept nogil:
    """Add the sum of a branch page, then those of the pages below it."""
    cdef BranchSums* sums = summing.sums
    cdef const BranchSum* known
    cdef const PageFile* file = summing.file
    cdef uint32_t at = sums.count, i
    cdef int error
    cdef Node node
    cdef Status status
    if summing.seen != NULL and not see_page(summing.seen, file, number):
        return CORRUPT
    if levels == 1:
        return OK if 2 <= number <= file.last else CORRUPT
    known = sums_find(summing.before, number) if summing.before != NULL else NULL
    status = reserve(sums, known.below + 1 if known != NULL else 1)
    if status != OK:
        return status
    if known != NULL:
        take_over(sums, known)
        return OK
    error = read_full(summing.ops, file.fd, image, file.page_bytes, number * file.page_bytes)
    if error:
        return IO_ERROR
    status = page_check(image, file.page_bytes, number, file.last, False)
    if status != OK or not page_is_branch(image):
        return CORRUPT
    sums.items[at].page = number
    sums.items[at].image = image_keep(sums, image, file.page_bytes, levels)
    sums.items[at].sum = crc32c(0, image, file.page_bytes)
    sums.count += 1
    for i in range(page_count(image) if levels > 2 or summing.seen != NULL else 0):
        page_node(image, i, &node)
        status = visit(summing, node.child, levels - 1, image + file.page_bytes)
        if status != OK:
            return status
    sums.items[at].below = sums.count - at - 1
    return OK


cdef void take_over(BranchSums* sums, const BranchSum* known) noexcept nogil:
    """Copy the sums of a page and of the pages below it from the commit before."""
    cdef uint32_t i
    for i in range(known.below + 1):
        sums.items[sums.count] = known[i]
        sums.count += 1
        if known[i].image != NULL:
            bk_add(&image_of(known[i].image).users, 1)
            sums.images += 1


# --- by page ---

cdef inline uint32_t slot_of(const BranchSums* sums, uint64_t page) noexcept nogil:
    return <uint32_t> ((page * <uint64_t> 0x9E3779B97F4A7C15) >> 32) & sums.slots_mask


cdef Status find_by_page(BranchSums* sums) noexcept nogil:
    """Build the hash table. CORRUPT if a page is in the tree twice."""
    cdef uint32_t size = 16, i, slot
    while size < 2 * sums.count:
        size *= 2
    sums.slots = <uint32_t*> calloc(size, sizeof(uint32_t))
    sums.slots_mask = size - 1
    if sums.slots == NULL:
        return NO_MEMORY
    for i in range(sums.count):
        slot = slot_of(sums, sums.items[i].page)
        while sums.slots[slot]:
            if sums.items[sums.slots[slot] - 1].page == sums.items[i].page:
                return CORRUPT
            slot = (slot + 1) & sums.slots_mask
        sums.slots[slot] = i + 1
    return OK


cdef const BranchSum* sums_find(const BranchSums* sums, uint64_t page) noexcept nogil:
    cdef uint32_t slot = slot_of(sums, page)
    while sums.slots[slot]:
        if sums.items[sums.slots[slot] - 1].page == page:
            return &sums.items[sums.slots[slot] - 1]
        slot = (slot + 1) & sums.slots_mask
    return NULL


cdef bint sums_hold(const BranchSums* sums, uint64_t number, const uint8_t* image, uint32_t page_bytes) noexcept nogil:
    cdef const BranchSum* known = sums_find(sums, number)
    return known != NULL and known.sum == crc32c(0, image, page_bytes)
