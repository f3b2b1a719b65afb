package peer;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;

/**
 * The content of an entry, computed from ledger, entry and size: big-endian splitmix64 words, truncated to the size.
 * tests/interop/payload.py has the same function in Python.
 */
final class Payload {
    private Payload() {
    }

    private static long mix(long z) {
        z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
        z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
        return z ^ (z >>> 31);
    }

    private static long seed(long ledger, long entry, int size) {
        return mix(ledger) * 3 + mix(entry) * 5 + size;
    }

    private static long word(long seed, int index) {
        return mix(seed + (index + 1) * 0x9e3779b97f4a7c15L);
    }

    static ByteBuf of(long ledger, long entry, int size) {
        byte[] bytes = new byte[(size + 7) / 8 * 8];
        ByteBuffer words = ByteBuffer.wrap(bytes);
        long seed = seed(ledger, entry, size);
        for (int i = 0; i < bytes.length / 8; i++) {
            words.putLong(word(seed, i));
        }
        return Unpooled.wrappedBuffer(bytes, 0, size);
    }

    static boolean matches(long ledger, long entry, ByteBuf data) {
        int size = data.readableBytes();
        int at = data.readerIndex();
        long seed = seed(ledger, entry, size);
        for (int i = 0; i < size / 8; i++) {
            if (data.getLong(at + i * 8) != word(seed, i)) {
                return false;
            }
        }
        long last = word(seed, size / 8);
        for (int i = size / 8 * 8, shift = 56; i < size; i++, shift -= 8) {
            if (data.getByte(at + i) != (byte) (last >>> shift)) {
                return false;
            }
        }
        return true;
    }
}
