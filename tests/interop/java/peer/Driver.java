package peer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * Runs the Apache BookKeeper client behind a pipe: each line of stdin is a request and each line of stdout a response, in JSON.
 *
 * <p>A request is {@code {"id": 1, "op": "create", ...}}; a response is {@code {"id": 1, "ok": {...}}} or
 * {@code {"id": 1, "error": {"code": -13, "name": "...", "message": "..."}}}, where code is a BKException code, or 0 for
 * other failures. Every request runs on a thread of its own, so responses come in any order. The end of the input
 * closes the clients and ends the process.
 */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    /** An operation, which reads named arguments and puts its results into {@code out}. */
    interface Operation {
        void run(JsonNode in, ObjectNode out) throws Exception;
    }

    private Driver() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);  // output of libraries must not mix with responses
        Map<String, Operation> operations = new HashMap<>();
        Handles handles = new Handles();
        handles.register(operations);
        new Tails(handles).register(operations);
        new Timings(handles).register(operations);
        Channels channels = new Channels();
        channels.register(operations);
        new Facts(channels).register(operations);
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode in = JSON.readTree(line);
            workers.execute(() -> answer(answers, operations, in));
        }
        workers.shutdownNow();
        handles.close();
        channels.close();
        System.exit(0);
    }

    private static void answer(PrintStream answers, Map<String, Operation> operations, JsonNode in) {
        ObjectNode line = JSON.createObjectNode().put("id", in.get("id").asLong());
        try {
            Operation operation = operations.get(in.get("op").asText());
            if (operation == null) {
                throw new IllegalArgumentException("unknown operation " + in.get("op"));
            }
            ObjectNode out = JSON.createObjectNode();
            operation.run(in, out);
            line.set("ok", out);
        } catch (Throwable failure) {
            line.set("error", describe(failure));
        }
        synchronized (answers) {
            answers.println(line);
            answers.flush();
        }
    }

    /** Returns a failure as JSON: the BKException below any wrapping, or the exception itself. */
    static ObjectNode describe(Throwable failure) {
        Throwable cause = failure;
        while ((cause instanceof CompletionException || cause instanceof ExecutionException) && cause.getCause() != null) {
            cause = cause.getCause();
        }
        int code = cause instanceof BKException ? ((BKException) cause).getCode() : 0;
        return JSON.createObjectNode().put("code", code).put("name", cause.getClass().getSimpleName())
                .put("message", String.valueOf(cause.getMessage()));
    }

    static String text(JsonNode in, String name, String otherwise) {
        return in.hasNonNull(name) ? in.get(name).asText() : otherwise;
    }

    static long number(JsonNode in, String name, long otherwise) {
        return in.hasNonNull(name) ? in.get(name).asLong() : otherwise;
    }

    static boolean flag(JsonNode in, String name, boolean otherwise) {
        return in.hasNonNull(name) ? in.get(name).asBoolean() : otherwise;
    }

    /** Returns the configuration in "settings". */
    static void settings(JsonNode in, ClientConfiguration conf) {
        if (in.hasNonNull("settings")) {
            in.get("settings").fields().forEachRemaining(
                    setting -> conf.setProperty(setting.getKey(), setting.getValue().asText()));
        }
    }
}
