"""Which ledgers an entry log holds, and how many bytes of each: from the map at its end, or by a scan. Any thread."""
