"""Format `bookkeeper`, reading.

format      the class that Spark makes: options, schema, readers
settings    the options of a reader
ledgers     which ledgers there are to read, and how far each goes
ranges      parts of ledgers, split and packed into Spark's partitions
bounds      filters that Spark hands down
batch       the reader of a query
offsets     where a stream stands, and how far its next batch goes
stream      the reader of a stream
reading     a partition, read: what a task does
blocks      entries as Arrow record batches
"""
