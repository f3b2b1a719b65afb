package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.util.AvailabilityOfEntriesOfLedger;

/** Sends single requests that only V3 has. A client in V2 sends them on its second connection. */
final class Facts {
    private final Channels channels;

    Facts(Channels channels) {
        this.channels = channels;
    }

    void register(Map<String, Driver.Operation> operations) {
        operations.put("raw_poll", this::poll);
        operations.put("raw_read_lac", this::readLac);
        operations.put("raw_force", this::force);
        operations.put("raw_info", this::info);
        operations.put("raw_list", this::list);
    }

    private static void hex(ObjectNode out, String name, ByteBuf bytes) {
        if (bytes != null && bytes.isReadable()) {
            out.put(name, ByteBufUtil.hexDump(bytes));
        }
    }

    /** bookie, ledger, previous, timeout_ms, v2: sends a read that waits for the LAC; returns it with the next entry. */
    private void poll(JsonNode in, ObjectNode out) throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        channels.client(in).readEntryWaitForLACUpdate(Channels.bookie(in), in.get("ledger").asLong(), -1,
                in.get("previous").asLong(), in.get("timeout_ms").asLong(), true,
                (rc, ledger, entry, data, context) -> {
                    out.put("code", rc).put("entry", entry);
                    hex(out, "data", data);
                    done.complete(null);
                }, null);
        done.get();
    }

    /** bookie, ledger, v2: sends one READ_LAC; returns both bodies in hex. */
    private void readLac(JsonNode in, ObjectNode out) throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        channels.client(in).readLac(Channels.bookie(in), in.get("ledger").asLong(),
                (rc, ledger, lac, last, context) -> {
                    out.put("code", rc);
                    hex(out, "lac", lac);
                    hex(out, "last", last);
                    done.complete(null);
                }, null);
        done.get();
    }

    /** bookie, ledger, v2: sends one FORCE_LEDGER. */
    private void force(JsonNode in, ObjectNode out) throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        channels.client(in).forceLedger(Channels.bookie(in), in.get("ledger").asLong(),
                (rc, ledger, address, context) -> done.complete(rc), null);
        out.put("code", done.get());
    }

    /** bookie, requested, v2: sends one GET_BOOKIE_INFO. */
    private void info(JsonNode in, ObjectNode out) throws Exception {
        CompletableFuture<Void> done = new CompletableFuture<>();
        channels.client(in).getBookieInfo(Channels.bookie(in), Driver.number(in, "requested", 3),
                (rc, info, context) -> {
                    out.put("code", rc);
                    if (rc == BKException.Code.OK) {
                        out.put("total", info.getTotalDiskSpace()).put("free", info.getFreeDiskSpace());
                    }
                    done.complete(null);
                }, null);
        done.get();
    }

    /** bookie, ledger, last: sends one GET_LIST_OF_ENTRIES_OF_LEDGER; returns its ids up to "last", and its bytes. */
    private void list(JsonNode in, ObjectNode out) throws Exception {
        AvailabilityOfEntriesOfLedger found =
                channels.client(in).getListOfEntriesOfLedger(Channels.bookie(in), in.get("ledger").asLong()).get();
        ArrayNode ids = out.putArray("ids");
        for (long id = 0; id <= in.get("last").asLong(); id++) {
            if (found.isEntryAvailable(id)) {
                ids.add(id);
            }
        }
        out.put("count", found.getTotalNumOfAvailableEntries())
                .put("data", java.util.HexFormat.of().formatHex(found.serializeStateOfEntriesOfLedger()));
    }
}
