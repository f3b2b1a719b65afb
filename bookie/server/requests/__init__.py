"""Requests that Python answers: rare ones, and those that need policy decisions.

workers          the threads that take them from the compiled module `server.policy` and answer them
replies          V3 responses
bookie_info      GET_BOOKIE_INFO
entry_list       GET_LIST_OF_ENTRIES_OF_LEDGER
authentication   AUTH, in V2 and V3
refused_logins   peers that failed to authenticate, for the log of the data port
"""
