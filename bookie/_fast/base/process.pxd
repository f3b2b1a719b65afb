"""How the compiled modules were built: with checks or for speed, with or without faults for tests. Any thread."""

cdef extern from *:
    """
    #ifdef BOOKIE_DEBUG
    #define BK_DEBUG_BUILD 1
    #else
    #define BK_DEBUG_BUILD 0
    #endif
    #ifdef BOOKIE_FAULTS
    #define BK_FAULTS_BUILD 1
    #else
    #define BK_FAULTS_BUILD 0
    #endif
    """
    const bint DEBUG_BUILD "BK_DEBUG_BUILD"
    const bint FAULTS_BUILD "BK_FAULTS_BUILD"
