# Only I/O loops come here.
