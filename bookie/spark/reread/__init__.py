"""Replays a bookie's access log to compute what its disks do for its readers. It does not use Spark.

access_log  parses the log, in the order in which requests were answered
cache       a model of the bookie's read cache and its rules of readahead
readers     a model of the bookie's table of readers that go forward by short steps
replay      replays a log with one cache size and readahead
"""
