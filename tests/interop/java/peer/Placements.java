package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.util.HashedWheelTimer;
import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookieInfoReader.BookieInfo;
import org.apache.bookkeeper.client.EnsemblePlacementPolicy;
import org.apache.bookkeeper.common.util.ReflectionUtils;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.feature.SettableFeatureProvider;
import org.apache.bookkeeper.net.BookieId;
import org.apache.bookkeeper.net.BookieSocketAddress;
import org.apache.bookkeeper.net.DNSToSwitchMapping;
import org.apache.bookkeeper.stats.NullStatsLogger;

/** Runs Java's placement policies. Arguments: a file with cases and a file for the results, both JSON arrays. */
public final class Placements {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Placements() {
    }

    /** Resolves hosts by a table. */
    private static final class Table implements DNSToSwitchMapping {
        private final Map<String, String> places = new HashMap<>();

        @Override
        public List<String> resolve(List<String> names) {
            List<String> found = new ArrayList<>();
            names.forEach(name -> found.add(places.get(name)));
            return found;
        }

        @Override
        public void reloadCachedMappings() {
        }

        @Override
        public boolean useHostName() {
            return false;
        }
    }

    public static void main(String[] args) throws Exception {
        HashedWheelTimer timer = new HashedWheelTimer();
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode one : JSON.readTree(new File(args[0]))) {
            answers.add(answer(one, timer));
        }
        JSON.writeValue(new File(args[1]), answers);
        timer.stop();
    }

    private static ObjectNode answer(JsonNode in, HashedWheelTimer timer) throws Exception {
        Table table = new Table();
        Set<BookieId> writable = new HashSet<>();
        in.get("places").fields().forEachRemaining(one -> {
            writable.add(BookieId.parse(one.getKey()));
            table.places.put(one.getKey().split(":")[0], one.getValue().asText());
        });
        ClientConfiguration conf = new ClientConfiguration();
        in.get("settings").fields().forEachRemaining(one -> conf.setProperty(one.getKey(), one.getValue().asText()));
        EnsemblePlacementPolicy policy = ReflectionUtils
                .newInstance("org.apache.bookkeeper.client." + in.get("policy").asText(), EnsemblePlacementPolicy.class)
                .initialize(conf, Optional.of(table), timer, SettableFeatureProvider.DISABLE_ALL,
                        NullStatsLogger.INSTANCE, BookieSocketAddress.LEGACY_BOOKIEID_RESOLVER);
        policy.onClusterChanged(writable, Collections.emptySet());
        if (conf.getDiskWeightBasedPlacementEnabled()) {
            Map<BookieId, BookieInfo> infos = new HashMap<>();
            in.get("free").fields().forEachRemaining(one ->
                    infos.put(BookieId.parse(one.getKey()), new BookieInfo(Long.MAX_VALUE, one.getValue().asLong())));
            policy.updateBookieInfo(infos);
        }
        int write = in.get("write").asInt();
        int ack = in.get("ack").asInt();
        ObjectNode out = JSON.createObjectNode();
        out.set("adheres", adheres(policy, in.get("judged"), write, ack));
        out.set("chosen", chosen(policy, in, write, ack));
        return out;
    }

    private static ArrayNode adheres(EnsemblePlacementPolicy policy, JsonNode ensembles, int write, int ack) {
        ArrayNode verdicts = JSON.createArrayNode();
        for (JsonNode ensemble : ensembles) {
            verdicts.add(policy.isEnsembleAdheringToPlacementPolicy(ids(ensemble), write, ack).name());
        }
        return verdicts;
    }

    /** Counts how often each bookie was at each place of an ensemble or replaced another one, and failures. */
    private static ObjectNode chosen(EnsemblePlacementPolicy policy, JsonNode in, int write, int ack) throws Exception {
        List<BookieId> old = ids(in.get("ensemble"));
        ObjectNode counts = JSON.createObjectNode();
        for (int i = 0; i < in.get("draws").asInt(); i++) {
            List<BookieId> drawn;
            try {
                if (old.isEmpty()) {
                    drawn = policy.newEnsemble(in.get("size").asInt(), write, ack, null, new HashSet<>()).getResult();
                } else {
                    drawn = List.of(policy.replaceBookie(old.size(), write, ack, null, old,
                            old.get(in.get("index").asInt()), new HashSet<>()).getResult());
                }
            } catch (BKException.BKNotEnoughBookiesException e) {
                drawn = List.of(BookieId.parse("nobody"));
            }
            for (int place = 0; place < drawn.size(); place++) {
                String key = place + " " + drawn.get(place);
                counts.put(key, counts.path(key).asInt() + 1);
            }
        }
        return counts;
    }

    private static List<BookieId> ids(JsonNode names) {
        List<BookieId> ids = new ArrayList<>();
        names.forEach(name -> ids.add(BookieId.parse(name.asText())));
        return ids;
    }
}
