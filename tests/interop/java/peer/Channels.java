package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.bookkeeper.client.api.WriteFlag;
import org.apache.bookkeeper.common.util.OrderedExecutor;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.net.BookieSocketAddress;
import org.apache.bookkeeper.proto.BookieClient;
import org.apache.bookkeeper.proto.BookieClientImpl;
import org.apache.bookkeeper.proto.BookkeeperInternalCallbacks.WriteCallback;
import org.apache.bookkeeper.proto.checksum.DigestManager;
import org.apache.bookkeeper.stats.NullStatsLogger;

/**
 * Sends single requests to one bookie, without ledger handles and metadata: the arguments say what is sent, and the result is
 * the BKException code and the received bytes of the entry.
 */
final class Channels {
    private final EventLoopGroup loop = new NioEventLoopGroup(1);
    private final OrderedExecutor executor = OrderedExecutor.newBuilder().name("channels").numThreads(1).build();
    private final ScheduledExecutorService scheduler = Executors.newSingleThreadScheduledExecutor();
    private final ByteBufAllocator allocator = UnpooledByteBufAllocator.DEFAULT;
    private final Map<String, BookieClient> clients = new ConcurrentHashMap<>();

    void register(Map<String, Driver.Operation> operations) {
        operations.put("raw_add", this::add);
        operations.put("raw_write_lac", this::writeLac);
        operations.put("raw_disconnect", (in, out) -> clients.remove(name(in, Driver.flag(in, "v2", true))).close());
        operations.put("raw_read", this::read);
        operations.put("raw_batch", this::batch);
    }

    void close() {
        clients.values().forEach(BookieClient::close);
        scheduler.shutdownNow();
        executor.shutdown();
        loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }

    /** v2, settings{}: returns the client for this combination. */
    BookieClient client(JsonNode in) {
        return client(in, Driver.flag(in, "v2", true));
    }

    private BookieClient client(JsonNode in, boolean v2) {
        return clients.computeIfAbsent(name(in, v2), unknown -> connect(in, v2));
    }

    private static String name(JsonNode in, boolean v2) {
        return v2 + String.valueOf(in.get("settings"));
    }

    private BookieClient connect(JsonNode in, boolean v2) {
        ClientConfiguration conf = new ClientConfiguration();
        conf.setUseV2WireProtocol(v2);
        Driver.settings(in, conf);
        try {
            return new BookieClientImpl(conf, loop, allocator, executor, scheduler, NullStatsLogger.INSTANCE,
                    BookieSocketAddress.LEGACY_BOOKIEID_RESOLVER);
        } catch (java.io.IOException refused) {
            throw new java.io.UncheckedIOException(refused);
        }
    }

    static BookieId bookie(JsonNode in) {
        return BookieId.parse(in.get("bookie").asText());
    }

    private static byte[] password(JsonNode in) {
        return Driver.text(in, "password", "").getBytes(StandardCharsets.UTF_8);
    }

    /** Returns the 20 bytes of the master key: "key" in hex instead of that of the password, or none if it is "none". */
    private static byte[] masterKey(JsonNode in) throws Exception {
        String key = Driver.text(in, "key", "");
        if (key.equals("none")) {
            return null;
        }
        return key.isEmpty() ? DigestManager.generateMasterKey(password(in)) : HexFormat.of().parseHex(key);
    }

    private static Method method(Class<?> of, String name, int parameters) throws NoSuchMethodException {
        for (Method method : of.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                return method;
            }
        }
        throw new NoSuchMethodException(of + "." + name + " of " + parameters);
    }

    /** Uses reflection, because the package of the digest enum differs between 4.17 and 4.18. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private DigestManager digests(long ledger, byte[] password, String digest, boolean v2) throws Exception {
        Method instantiate = method(DigestManager.class, "instantiate", 5);
        Enum type = Enum.valueOf((Class<Enum>) instantiate.getParameterTypes()[2], digest);
        return (DigestManager) instantiate.invoke(null, ledger, password, type, allocator, v2);
    }

    /** Returns an entry as it is sent, without its frame. Uses reflection, because 4.16 needs the key and flags of V2 first. */
    private static Object sealed(DigestManager digests, long entry, long lac, long length, ByteBuf data, byte[] key,
            int flags) throws Exception {
        String name = "computeDigestAndPackageForSending";
        try {
            return method(DigestManager.class, name, 6).invoke(digests, entry, lac, length, data, key, flags);
        } catch (NoSuchMethodException older) {
            return method(DigestManager.class, name, 4).invoke(digests, entry, lac, length, data);
        }
    }

    /** bookie, ledger, entry, lac, length, size, digest, password, key, flags, v2: sends one ADD. */
    private void add(JsonNode in, ObjectNode out) throws Exception {
        long ledger = in.get("ledger").asLong();
        long entry = in.get("entry").asLong();
        int size = (int) Driver.number(in, "size", 16);
        int flags = (int) Driver.number(in, "flags", 0);
        byte[] key = masterKey(in);
        DigestManager digests = digests(ledger, password(in), Driver.text(in, "digest", "CRC32C"),
                Driver.flag(in, "v2", true));
        CompletableFuture<Integer> done = new CompletableFuture<>();
        WriteCallback told = (rc, l, e, address, context) -> done.complete(rc);
        Object sealed = sealed(digests, entry, Driver.number(in, "lac", entry - 1),
                Driver.number(in, "length", size * (entry + 1)), Payload.of(ledger, entry, size), key, flags);
        method(BookieClient.class, "addEntry", 10).invoke(client(in), bookie(in), ledger, key, entry, sealed, told, null,
                flags, false, WriteFlag.NONE);
        out.put("code", done.get());
    }

    /** bookie, ledger, lac, digest, password: sends one WRITE_LAC, which only V3 has. */
    private void writeLac(JsonNode in, ObjectNode out) throws Exception {
        long ledger = in.get("ledger").asLong();
        long lac = in.get("lac").asLong();
        DigestManager digests = digests(ledger, password(in), Driver.text(in, "digest", "CRC32C"), false);
        CompletableFuture<Integer> done = new CompletableFuture<>();
        client(in, false).writeLac(bookie(in), ledger, masterKey(in), lac,
                digests.computeDigestAndPackageForSendingLac(lac), (rc, l, address, context) -> done.complete(rc), null);
        out.put("code", done.get());
    }

    /** bookie, ledger, entry, flags, password, key, v2: sends one READ; returns the entry in hex. */
    private void read(JsonNode in, ObjectNode out) throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        client(in).readEntry(bookie(in), in.get("ledger").asLong(), in.get("entry").asLong(),
                (rc, ledger, entry, data, context) -> {
                    out.put("code", rc).put("entry", entry);
                    if (data != null) {
                        out.put("data", ByteBufUtil.hexDump(data));
                    }
                    done.complete(null);
                }, null, (int) Driver.number(in, "flags", 0), masterKey(in));
        done.get();
    }

    /** bookie, ledger, entry, count, max_size, flags, password, key: sends one BATCH_READ; returns sizes, and entries in hex. */
    private void batch(JsonNode in, ObjectNode out) throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        client(in).batchReadEntries(bookie(in), in.get("ledger").asLong(), in.get("entry").asLong(),
                (int) Driver.number(in, "count", 0), Driver.number(in, "max_size", 5 << 20),
                (rc, ledger, entry, entries, context) -> {
                    out.put("code", rc);
                    ArrayNode sizes = out.putArray("sizes");
                    ArrayNode data = out.putArray("data");
                    for (int i = 0; entries != null && i < entries.size(); i++) {
                        ByteBuf one = entries.getBuffer(i);
                        sizes.add(one.readableBytes());
                        data.add(ByteBufUtil.hexDump(one));
                    }
                    done.complete(null);
                }, null, (int) Driver.number(in, "flags", 0), masterKey(in));
        done.get();
    }
}
