"""Which ledgers an entry log holds, and how many bytes of each: from its ledgers map, or by a scan. Any thread."""
