"""Requests that Python answers: seldom ones, and those that are a matter of policy.

workers          the threads that take them from the compiled module `server.policy` and answer
replies          V3 answers
bookie_info      GET_BOOKIE_INFO
entry_list       GET_LIST_OF_ENTRIES_OF_LEDGER
authentication   AUTH, in V2 and V3
rejections       who was not let in, for the log of the data port
"""
