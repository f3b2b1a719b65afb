"""What the bookie writes to its logs.

`formats` writes records as key=value pairs or as JSON. Peers can bring about some lines as often as they like:
`seldom` writes one a second of each kind, and `rejections` one a second for each address that did something wrong.
`access_log` starts and stops the log of adds and reads, which the I/O loops write without Python.

Begin with `formats`, then `seldom`.

Leans on: server.process, server.configuration.
"""
