package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.ReadHandle;

/** Measures reads of a whole ledger, and checks only that all entries come in order. */
final class Timings {
    private final Handles handles;
    private long sum;

    Timings(Handles handles) {
        this.handles = handles;
    }

    void register(Map<String, Driver.Operation> operations) {
        operations.put("timed_read", this::timedRead);
    }

    /**
     * handle, last, count, max_size, ahead, batch, touch: reads entries 0 to last with calls of count entries, of which ahead
     * are outstanding; with batch as batch reads; with touch each payload is read.
     */
    private void timedRead(JsonNode in, ObjectNode out) throws Exception {
        ReadHandle handle = handles.handle(in.get("handle"));
        long last = in.get("last").asLong();
        int count = (int) Driver.number(in, "count", 100);
        long maxSize = Driver.number(in, "max_size", 5 << 20);
        int ahead = (int) Driver.number(in, "ahead", 1);
        boolean batch = Driver.flag(in, "batch", true);
        boolean touch = Driver.flag(in, "touch", false);
        ArrayDeque<CompletableFuture<LedgerEntries>> waiting = new ArrayDeque<>();
        ArrayDeque<Long> ends = new ArrayDeque<>();
        sum = 0;
        long asked = 0;
        long next = 0;
        long start = System.nanoTime();
        while (next <= last) {
            while (waiting.size() < ahead && asked <= last) {
                long end = Math.min(last, asked + count - 1);
                waiting.add(batch ? handle.batchReadAsync(asked, (int) (end - asked + 1), maxSize)
                        : handle.readAsync(asked, end));
                ends.add(end);
                asked = end + 1;
            }
            next = take(waiting.remove().get(), next, touch);
            long end = ends.remove();
            while (next <= end) {  // fewer entries than requested
                next = take(handle.batchRead(next, (int) (end - next + 1), maxSize), next, touch);
            }
        }
        long nanos = System.nanoTime() - start;
        out.put("entries", next).put("seconds", nanos / 1e9).put("sum", sum);
    }

    private long take(LedgerEntries entries, long next, boolean touch) {
        try {
            for (LedgerEntry entry : entries) {
                if (entry.getEntryId() != next) {
                    throw new IllegalStateException("entry " + entry.getEntryId() + " in place of " + next);
                }
                next++;
                if (touch) {
                    sum += entry.getEntryBuffer().getByte(0) + entry.getLength();
                }
            }
        } finally {
            entries.close();
        }
        return next;
    }
}
