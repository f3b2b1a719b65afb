"""Simulates how a cluster fills up under a placement policy, months in seconds. It does not use Spark.

options   the options of the job, and the scenarios that they describe
scenario  the parameters of a run: cluster, load, policy and seed
cluster   the run: the client's own policy places ledgers, bytes are counted, full bookies become read-only
"""
