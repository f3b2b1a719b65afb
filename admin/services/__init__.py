"""The services of the admin port, one a file: `add_to` a server, `close` ends what streams.

Each is the methods of one service in proto/bookie/pb. They run on the plane's threads, behind `admin.interceptor`,
which has judged the caller before and turns what they raise into statuses.
"""
