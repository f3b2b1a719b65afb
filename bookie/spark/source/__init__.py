"""Reading with format `bookkeeper`, as a batch query or a stream. Begin with `format`.

format      the DataSource class that Spark instantiates: schema, readers and writers
settings    the options of a reader
ledgers     the ledgers to read, and how far each of them goes
ranges      ranges of entries, split and packed into Spark's partitions
bounds      the filters that Spark pushes down
batch       the reader of a batch query
offsets     the position of a stream, and the end of its next batch
stream      the reader of a stream
reading     reading one partition, in a task
blocks      entries as Arrow record batches
"""
