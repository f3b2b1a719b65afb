package peer;

import static org.apache.bookkeeper.client.api.BKException.Code.OK;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.BookKeeper;
import org.apache.bookkeeper.client.api.CreateBuilder;
import org.apache.bookkeeper.client.api.DigestType;
import org.apache.bookkeeper.client.api.LedgerEntries;
import org.apache.bookkeeper.client.api.LedgerEntry;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.client.api.WriteHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** Uses the public client API: creates, writes, opens, reads, fences and deletes ledgers through ZooKeeper. */
final class Handles {
    private static final long BOOKIES_NANOS_MAX = 20_000_000_000L;

    private final Map<String, BookKeeper> clients = new ConcurrentHashMap<>();
    private final Map<Long, ReadHandle> handles = new ConcurrentHashMap<>();
    private final AtomicLong nextHandle = new AtomicLong();
    private final Map<Long, AtomicLong> acknowledged = new ConcurrentHashMap<>();

    void register(Map<String, Driver.Operation> operations) {
        operations.put("connect", this::connect);
        operations.put("disconnect", this::disconnect);
        operations.put("create", this::create);
        operations.put("open", this::open);
        operations.put("add", this::add);
        operations.put("progress", this::progress);
        operations.put("read", this::read);
        operations.put("batch_read", this::batchRead);
        operations.put("lac", this::lac);
        operations.put("close", this::closeHandle);
        operations.put("delete", this::delete);
        operations.put("metadata", this::metadata);
    }

    void close() throws Exception {
        for (BookKeeper client : clients.values()) {
            client.close();
        }
    }

    /** uri, v2, batch, settings{}: creates a client with the name "client". */
    private void connect(JsonNode in, ObjectNode out) throws Exception {
        ClientConfiguration conf = new ClientConfiguration();
        conf.setMetadataServiceUri(in.get("uri").asText());
        conf.setUseV2WireProtocol(Driver.flag(in, "v2", true));
        conf.setProperty("batchReadEnabled", Driver.flag(in, "batch", true));  // by name: 4.16 has no setter
        conf.setThrottleValue(0);  // by default a client adds at most 5,000 entries a second
        conf.setAddEntryTimeout(60);  // by default a bookie counts as lost after five seconds, which a busy machine may need
        conf.setReadEntryTimeout(60);
        Driver.settings(in, conf);
        BookKeeper former = clients.put(Driver.text(in, "client", "main"), BookKeeper.newBuilder(conf).build());
        if (former != null) {
            former.close();
        }
    }

    private void disconnect(JsonNode in, ObjectNode out) throws Exception {
        clients.remove(Driver.text(in, "client", "main")).close();
    }

    private BookKeeper client(JsonNode in) {
        return clients.get(Driver.text(in, "client", "main"));
    }

    private ReadHandle handleOf(JsonNode in) {
        return handle(in.get("handle"));
    }

    ReadHandle handle(JsonNode number) {
        ReadHandle handle = handles.get(number.asLong());
        if (handle == null) {
            throw new IllegalArgumentException("no handle " + number);
        }
        return handle;
    }

    private void answer(ObjectNode out, ReadHandle handle) {
        long number = nextHandle.incrementAndGet();
        handles.put(number, handle);
        acknowledged.put(number, new AtomicLong());
        out.put("handle", number).put("ledger", handle.getId()).put("lac", handle.getLastAddConfirmed())
                .put("length", handle.getLength()).put("closed", handle.isClosed());
    }

    /**
     * e, w, a, digest, password, deferred, custom{}: creates a ledger and a handle that writes to it. Waits until the client
     * knows as many bookies as it needs, which is a moment after they registered.
     */
    private void create(JsonNode in, ObjectNode out) throws Exception {
        Map<String, byte[]> custom = new HashMap<>();
        if (in.hasNonNull("custom")) {
            in.get("custom").fields().forEachRemaining(
                    e -> custom.put(e.getKey(), e.getValue().asText().getBytes(StandardCharsets.UTF_8)));
        }
        CreateBuilder builder = client(in).newCreateLedgerOp()
                .withEnsembleSize((int) Driver.number(in, "e", 1))
                .withWriteQuorumSize((int) Driver.number(in, "w", 1))
                .withAckQuorumSize((int) Driver.number(in, "a", 1))
                .withDigestType(DigestType.valueOf(Driver.text(in, "digest", "CRC32C")))
                .withCustomMetadata(custom)
                .withPassword(Driver.text(in, "password", "").getBytes(StandardCharsets.UTF_8));
        if (Driver.flag(in, "deferred", false)) {
            builder.withWriteFlags(WriteFlag.DEFERRED_SYNC);
        }
        long deadline = System.nanoTime() + BOOKIES_NANOS_MAX;
        while (true) {
            try {
                answer(out, builder.execute().get());
                return;
            } catch (ExecutionException failure) {
                boolean tooFew = failure.getCause() instanceof BKException.BKNotEnoughBookiesException;
                if (!tooFew || System.nanoTime() > deadline) {
                    throw failure;
                }
                Thread.sleep(20);
            }
        }
    }

    /** ledger, recovery, digest, password: opens a handle that reads; with recovery the ledger is fenced and closed first. */
    private void open(JsonNode in, ObjectNode out) throws Exception {
        answer(out, client(in).newOpenLedgerOp()
                .withLedgerId(in.get("ledger").asLong())
                .withRecovery(Driver.flag(in, "recovery", false))
                .withDigestType(DigestType.valueOf(Driver.text(in, "digest", "CRC32C")))
                .withPassword(Driver.text(in, "password", "").getBytes(StandardCharsets.UTF_8))
                .execute().get());
    }

    /** handle, n, size, window, same: adds n entries with window outstanding; stops at the first failure and reports it. */
    private void add(JsonNode in, ObjectNode out) throws Exception {
        WriteHandle handle = (WriteHandle) handleOf(in);
        long count = Driver.number(in, "n", 1);
        int size = (int) Driver.number(in, "size", 1024);
        int window = (int) Driver.number(in, "window", 1000);
        byte[] same = Driver.flag(in, "same", false) ? new byte[size] : null;  // for measurements: one payload for all entries
        AtomicLong done = acknowledged.get(in.get("handle").asLong());
        Semaphore room = new Semaphore(window);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        AtomicLong added = new AtomicLong();
        AtomicLong last = new AtomicLong(-1);
        long first = handle.getLastAddConfirmed() + 1;
        long start = System.nanoTime();
        for (long entry = first; entry < first + count; entry++) {
            room.acquire();
            if (failure.get() != null) {
                room.release();
                break;
            }
            ByteBuf payload = same != null ? Unpooled.wrappedBuffer(same) : Payload.of(handle.getId(), entry, size);
            handle.appendAsync(payload).whenComplete((id, error) -> {
                if (error != null) {
                    failure.compareAndSet(null, error);
                } else {
                    added.incrementAndGet();
                    done.incrementAndGet();
                    last.accumulateAndGet(id, Math::max);
                }
                room.release();
            });
        }
        room.acquire(window);
        double seconds = (System.nanoTime() - start) / 1e9;
        out.put("added", added.get()).put("last", last.get()).put("seconds", seconds).put("rate", added.get() / seconds);
        if (failure.get() != null) {
            out.set("error", Driver.describe(failure.get()));
        }
    }

    /** handle: returns how many adds were acknowledged so far, also while "add" runs. */
    private void progress(JsonNode in, ObjectNode out) {
        out.put("acknowledged", acknowledged.get(in.get("handle").asLong()).get());
    }

    /** Checks entries that were read: ids have no gaps, contents are those of {@link Payload}, and the size if it is given. */
    private static final class Checker {
        private final long ledger;
        private final int size;
        private long expected;
        private long bytes;
        private final List<String> wrong = new ArrayList<>();

        Checker(long ledger, long first, int size) {
            this.ledger = ledger;
            this.expected = first;
            this.size = size;
        }

        int check(LedgerEntries entries) {
            int count = 0;
            try {
                for (LedgerEntry entry : entries) {
                    if (entry.getEntryId() != expected) {
                        wrong.add("entry " + entry.getEntryId() + " in place of " + expected);
                    }
                    if (size >= 0 && entry.getEntryBuffer().readableBytes() != size) {
                        wrong.add("entry " + expected + " has " + entry.getEntryBuffer().readableBytes() + " bytes");
                    } else if (!Payload.matches(ledger, entry.getEntryId(), entry.getEntryBuffer())) {
                        wrong.add("entry " + expected + " has other content");
                    }
                    bytes += entry.getEntryBuffer().readableBytes();
                    expected++;
                    count++;
                }
            } finally {
                entries.close();
            }
            return count;
        }

        void answer(ObjectNode out, long first, long calls, long start) {
            double seconds = (System.nanoTime() - start) / 1e9;
            out.put("entries", expected - first).put("bytes", bytes).put("calls", calls).put("seconds", seconds)
                    .put("rate", (expected - first) / seconds).put("wrong", wrong.size());
            out.putPOJO("examples", wrong.subList(0, Math.min(5, wrong.size())));
        }
    }

    /** handle, first, last, size, step, unconfirmed: reads single entries, step entries in each call. */
    private void read(JsonNode in, ObjectNode out) throws Exception {
        ReadHandle handle = handleOf(in);
        long first = in.get("first").asLong();
        long last = in.get("last").asLong();
        long step = Driver.number(in, "step", 100);
        boolean unconfirmed = Driver.flag(in, "unconfirmed", false);
        Checker checker = new Checker(handle.getId(), first, (int) Driver.number(in, "size", -1));
        long calls = 0;
        long start = System.nanoTime();
        for (long at = first; at <= last; at += step, calls++) {
            long to = Math.min(last, at + step - 1);
            checker.check(unconfirmed ? handle.readUnconfirmed(at, to) : handle.read(at, to));
        }
        checker.answer(out, first, calls, start);
    }

    /** handle, first, last, count, max_size, size: reads batches, one at a time, until last was read. */
    private void batchRead(JsonNode in, ObjectNode out) throws Exception {
        ReadHandle handle = handleOf(in);
        long first = in.get("first").asLong();
        long last = in.get("last").asLong();
        int count = (int) Driver.number(in, "count", 500);
        long maxSize = Driver.number(in, "max_size", 5 << 20);
        Checker checker = new Checker(handle.getId(), first, (int) Driver.number(in, "size", -1));
        long calls = 0;
        int largest = 0;
        long start = System.nanoTime();
        for (long at = first; at <= last; calls++) {
            int want = (int) Math.min(count, last - at + 1);
            int got = checker.check(handle.batchRead(at, want, maxSize));
            if (got == 0) {
                throw new IllegalStateException("a batch read at " + at + " answered no entry");
            }
            largest = Math.max(largest, got);
            at += got;
        }
        checker.answer(out, first, calls, start);
        out.put("largest", largest).put("fell_back", fellBack(handle));
    }

    /** Returns whether the client silently stopped using batch reads for this handle. */
    private static boolean fellBack(ReadHandle handle) throws ReflectiveOperationException {
        Field field = LedgerHandle.class.getDeclaredField("notSupportBatch");
        field.setAccessible(true);
        return field.getBoolean(handle);
    }

    /** handle: returns the last confirmed entry that the client knows, and the one that bookies return. */
    private void lac(JsonNode in, ObjectNode out) throws Exception {
        ReadHandle handle = handleOf(in);
        CompletableFuture<Long> told = handle.readLastAddConfirmedAsync();
        out.put("local", handle.getLastAddConfirmed()).put("told", told.get());
    }

    private void closeHandle(JsonNode in, ObjectNode out) throws Exception {
        handleOf(in).close();
        out.put("code", OK);
    }

    private void delete(JsonNode in, ObjectNode out) throws Exception {
        client(in).newDeleteLedgerOp().withLedgerId(in.get("ledger").asLong()).execute().get();
        out.put("code", OK);
    }

    /** handle: returns the ledger's metadata that the client has. */
    private void metadata(JsonNode in, ObjectNode out) throws Exception {
        LedgerMetadata metadata = handleOf(in).getLedgerMetadata();
        out.put("state", metadata.getState().toString()).put("last", metadata.getLastEntryId())
                .put("length", metadata.getLength()).put("ensembles", metadata.getAllEnsembles().toString());
    }
}
