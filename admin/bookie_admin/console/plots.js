// The charts of this bookie, from the samples of `history`.

import { chart } from "/console/charts.js";
import { bytes, count, millis, percent } from "/console/dom.js";
import { gauge, quantile, rate, ratio, spanMs, times } from "/console/history.js";

const plot = (title, text, least, lines) => chart(title, { times: times(), lines, text, least, spanMs: spanMs() });
const perSecond = (value) => `${count(value)}/s`;
const bytesPerSecond = (value) => `${bytes(value)}/s`;

export const throughput = () => [
  plot("Entries", perSecond, 10, [
    { name: "added", kind: "a", values: rate("pybookie_journal_records_total") },
    { name: "read", kind: "b", values: rate("pybookie_read_entries_total") },
  ]),
  plot("Data port", bytesPerSecond, 1000, [
    { name: "in", kind: "a", values: rate("pybookie_received_bytes_total") },
    { name: "out", kind: "b", values: rate("pybookie_sent_bytes_total") },
  ]),
];

const ADD = "bookkeeper_server_ADD_ENTRY_REQUEST";
const SYNC = "bookie_journal_JOURNAL_SYNC";
const BATCH = "bookkeeper_server_BATCH_READ_ENTRY_REQUEST";
const READ = "bookkeeper_server_READ_ENTRY_REQUEST";

export const latency = () => [
  plot("Latency of adds", millis, 1, [
    { name: "median", kind: "a", values: quantile(ADD, 0.5) },
    { name: "99 %", kind: "c", values: quantile(ADD, 0.99) },
    { name: "journal sync, 99 %", kind: "b", values: quantile(SYNC, 0.99) },
  ]),
  plot("Latency of reads", millis, 1, [
    { name: "single, 99 %", kind: "a", values: quantile(READ, 0.99) },
    { name: "batch, median", kind: "b", values: quantile(BATCH, 0.5) },
    { name: "batch, 99 %", kind: "c", values: quantile(BATCH, 0.99) },
  ]),
];

export const caches = () => [
  plot("Memory in use", bytes, 1000, [
    { name: "write cache", kind: "a", values: gauge("bookie_write_cache_size") },
    { name: "read cache", kind: "b", values: gauge("bookie_read_cache_size") },
    { name: "journal queue", kind: "c", values: gauge("bookie_journal_JOURNAL_MEMORY_USED") },
  ]),
  plot("Read cache hits", (value) => percent(value, 0), 1, [
    { name: "hits", kind: "b", values: ratio(rate("bookie_read_cache_hits"), rate("bookie_read_cache_misses")) },
  ]),
  plot("Wasted disk reads", perSecond, 10, [
    { name: "read again from disk", kind: "c", values: rate("pybookie_reread_entries_total") },
    { name: "evicted unused", kind: "a", values: rate("pybookie_read_cache_evicted_unused_entries_total") },
  ]),
  plot("Journal", bytesPerSecond, 1000, [
    { name: "written", kind: "b", values: rate("bookie_journal_JOURNAL_WRITE_BYTES") },
    { name: "entries", kind: "a", values: rate("bookie_WRITE_BYTES") },
  ]),
];
