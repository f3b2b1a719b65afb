"""What is reported about a failed query."""

from bookie.spark.sessions import cause_of


def test_the_cause_is_ours_where_there_is_one() -> None:
    """One line out of Python's and Java's stack traces: our error if there is one, else Spark's first line."""
    text = """Job aborted due to stage failure:
Traceback (most recent call last):
  File "import.py", line 1, in write
bookie.errors.IllegalOperation: ledger 7: the files differ

    at org.apache.spark.Task.run(Task.scala:1)"""
    assert cause_of(text) == "ledger 7: the files differ"
    assert cause_of("\n[PATH_NOT_FOUND] no such path\nmore") == "[PATH_NOT_FOUND] no such path"
    assert cause_of("")
