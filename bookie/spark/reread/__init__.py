"""What a bookie's disks do for its readers, replayed from its access log. No Spark in here.

access_log  the lines, in the order in which they were answered
cache       the bookie's read cache and its rules of readahead, as a model
replay      one cache size and readahead against a log
"""
