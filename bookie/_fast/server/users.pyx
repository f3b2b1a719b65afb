"""Users with reference counts: held by Python, by responses on their way to a loop, and by connections."""
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free

from bookie._fast.base.sync cimport bk_add, bk_load, bk_store

READ = MAY_READ
WRITE = MAY_WRITE
ADMIN = MAY_ADMIN
ALL = MAY_ALL


cdef User* user_hold(User* user) noexcept nogil:
    if user != NULL:
        bk_add(&user.references, 1)
    return user


cdef void user_release(User* user) noexcept nogil:
    if user != NULL and bk_add(&user.references, -1) == 0:
        free(user)


cdef void login_enter(Login* login, User* user, uint8_t may) noexcept nogil:
    login_leave(login)
    login.user = user
    login.granted = may
    if user != NULL:
        bk_add(&user.connections, 1)
        bk_add(&user.logins, 1)


cdef void login_leave(Login* login) noexcept nogil:
    cdef User* user = login.user
    login.user = NULL
    if user != NULL:
        bk_add(&user.connections, -1)
        user_release(user)


cdef class AuthenticatedUser:
    """An authenticated user, created by Python at the first login with a name and credential."""

    def __cinit__(self):
        self.user = <User*> calloc(1, sizeof(User))
        if self.user == NULL:
            raise MemoryError
        self.user.references = 1

    @property
    def connections(self) -> int:
        """Number of connections that are open now."""
        return bk_load(&self.user.connections)

    @property
    def logins(self) -> int:
        """Number of logins since it was created."""
        return bk_load(&self.user.logins)

    @property
    def refused(self) -> int:
        """Number of requests refused for lack of a right."""
        return bk_load(&self.user.refused)

    @property
    def revoked(self) -> bool:
        """Whether its connections are to be closed."""
        return bk_load(&self.user.revoked) != 0

    def revoke(self) -> None:
        """Close its connections, each in its loop's next round, and refuse further logins as this user."""
        bk_store(&self.user.revoked, 1)

    def __dealloc__(self):
        user_release(self.user)
