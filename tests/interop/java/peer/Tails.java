package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteHandle;

/** Uses what only V3 has for handles: following ledgers with long polls, explicit LACs, deferred sync. */
final class Tails {
    private final Handles handles;

    Tails(Handles handles) {
        this.handles = handles;
    }

    void register(Map<String, Driver.Operation> operations) {
        operations.put("tail", this::tail);
        operations.put("force", this::force);
        operations.put("explicit_lac", this::explicitLac);
    }

    /**
     * handles[], last, timeout_ms, parallel: follows all ledgers at once with readLastAddConfirmedAndEntry until entry
     * "last" of each was read, in order and with the content of {@link Payload}.
     */
    private void tail(JsonNode in, ObjectNode out) throws Exception {
        List<Tail> tails = new ArrayList<>();
        for (JsonNode number : in.get("handles")) {
            tails.add(new Tail(handles.handle(number), in.get("last").asLong(),
                    Driver.number(in, "timeout_ms", 1000), Driver.flag(in, "parallel", false)));
        }
        tails.forEach(Tail::next);
        AtomicLong with = new AtomicLong();
        AtomicLong without = new AtomicLong();
        ArrayNode wrong = out.putArray("wrong");
        for (Tail tail : tails) {
            tail.done.get();
            with.addAndGet(tail.withEntry);
            without.addAndGet(tail.withoutEntry);
            tail.wrong.forEach(wrong::add);
        }
        out.put("entries", with.get()).put("empty_answers", without.get());
    }

    /** A ledger that is followed. The client's callback thread owns it. */
    private static final class Tail {
        private final ReadHandle handle;
        private final long last;
        private final long timeoutMs;
        private final boolean parallel;
        private final CompletableFuture<Void> done = new CompletableFuture<>();
        private final List<String> wrong = new ArrayList<>();
        private long expected;
        private long withEntry;
        private long withoutEntry;

        Tail(ReadHandle handle, long last, long timeoutMs, boolean parallel) {
            this.handle = handle;
            this.last = last;
            this.timeoutMs = timeoutMs;
            this.parallel = parallel;
        }

        void next() {
            handle.readLastAddConfirmedAndEntryAsync(expected, timeoutMs, parallel).whenComplete((answer, error) -> {
                if (error != null) {
                    done.completeExceptionally(error);
                    return;
                }
                try (answer) {
                    take(answer.hasEntry() ? answer.getEntry() : null, answer.getLastAddConfirmed());
                }
                if (expected > last) {
                    done.complete(null);
                } else {
                    next();
                }
            });
        }

        private void take(LedgerEntry entry, long confirmed) {
            if (entry == null) {
                withoutEntry++;
                return;
            }
            String where = "ledger " + handle.getId() + ", entry " + entry.getEntryId();
            if (entry.getEntryId() != expected || confirmed < expected) {
                wrong.add(where + " in place of " + expected + ", confirmed " + confirmed);
            }
            if (!Payload.matches(handle.getId(), entry.getEntryId(), entry.getEntryBuffer())) {
                wrong.add(where + " has other content");
            }
            withEntry++;
            expected = entry.getEntryId() + 1;
        }
    }

    /** handle: calls WriteHandle.force. */
    private void force(JsonNode in, ObjectNode out) throws Exception {
        WriteHandle handle = (WriteHandle) handles.handle(in.get("handle"));
        handle.force().get();
        out.put("lac", handle.getLastAddConfirmed());
    }

    /** handle: returns the LAC that bookies return for READ_LAC. */
    private void explicitLac(JsonNode in, ObjectNode out) throws Exception {
        out.put("lac", ((LedgerHandle) handles.handle(in.get("handle"))).readExplicitLastConfirmed());
    }
}
