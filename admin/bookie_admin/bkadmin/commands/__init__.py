"""The commands of `bkadmin`, one module for each, whose `command` is the click command. Heavy imports are inside
functions, so that each command loads only what it needs.
"""
