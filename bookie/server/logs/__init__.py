"""The logs of the bookie.

`formats` writes records as key=value pairs or as JSON. Peers can cause some log lines as often as they like:
`throttle` writes one per second of each kind, and `rejections` one per second for each address that did something
wrong. `access_log` starts and stops the log of adds and reads, which the I/O loops write without Python.

Begin with `formats`, then `throttle`.

Leans on: server.process, server.configuration.
"""
