// The last five minutes of this bookie's metrics, sampled while the page is open, and the time series for charts.

import { get } from "/console/api.js";

const SPAN_MS = 300000;
export const EVERY_MS = 2000;

const NAMES = [
  "bookie_WRITE_BYTES", "bookie_journal_JOURNAL_MEMORY_USED", "bookie_journal_JOURNAL_SYNC", "bookie_journal_JOURNAL_WRITE_BYTES",
  "bookie_read_cache_hits", "bookie_read_cache_misses", "bookie_read_cache_size", "bookie_write_cache_size",
  "bookkeeper_server_ADD_ENTRY_REQUEST", "bookkeeper_server_BATCH_READ_ENTRY_REQUEST",
  "bookkeeper_server_READ_ENTRY_REQUEST", "pybookie_journal_records_total",
  "pybookie_read_cache_evicted_unused_entries_total", "pybookie_read_entries_total", "pybookie_received_bytes_total",
  "pybookie_reread_entries_total", "pybookie_sent_bytes_total",
];

const samples = []; // { at, families }

export async function sample() {
  const found = await get("/api/console/metrics", { names: NAMES.join(",") });
  samples.push({ at: found.nowMs, families: found.families });
  while (samples.length && samples[0].at < found.nowMs - SPAN_MS - EVERY_MS) samples.shift();
}

// The time span of charts: grows with the samples from one to five minutes.
export function spanMs() {
  const age = samples.length > 1 ? samples.at(-1).at - samples[1].at : 0;
  return [60000, 120000, SPAN_MS].find((one) => age <= one) ?? SPAN_MS;
}

export const times = () => samples.slice(1).map((one) => one.at);

const fits = (labels, wanted) => Object.entries(wanted).every(([name, value]) => labels[name] === value);

// The sum over all labels of one kind of sample; null if this bookie does not have it.
function total(families, name, suffix = "", wanted = {}) {
  const chosen = (families[name] ?? []).filter(([kind, labels]) => kind === suffix && fits(labels, wanted));
  return chosen.length ? chosen.reduce((sum, [, , value]) => sum + (value ?? 0), 0) : null;
}

export const gauge = (name) => samples.slice(1).map((one) => total(one.families, name));

// The change per second; null if a sample is missing or the bookie was restarted in between.
export function rate(name, suffix = "", wanted = {}) {
  return samples.slice(1).map((one, k) => {
    const before = total(samples[k].families, name, suffix, wanted), after = total(one.families, name, suffix, wanted);
    const seconds = (one.at - samples[k].at) / 1000;
    return before === null || after === null || after < before || seconds <= 0 ? null : (after - before) / seconds;
  });
}

export const ratio = (part, rest) => part.map((value, k) =>
  (value === null || rest[k] === null || value + rest[k] === 0 ? null : value / (value + rest[k])));

// A quantile in the unit of the family: that of a summary, or computed from the increase of histogram buckets.
export function quantile(name, q) {
  return samples.slice(1).map((one, k) => {
    const values = (one.families[name] ?? []).filter(([suffix, labels]) => suffix === "" && Number(labels.quantile) === q
      && (labels.success ?? "true") === "true").map(([, , value]) => value);
    if (values.length) return values[0];
    return bucketQuantile(gained(samples[k].families[name], one.families[name]), q);
  });
}

function gained(before, after) {
  const edges = new Map();
  for (const [family, sign] of [[after, 1], [before, -1]]) {
    for (const [suffix, labels, value] of family ?? []) {
      if (suffix !== "_bucket" || (labels.success ?? "true") !== "true") continue;
      const edge = labels.le === "+Inf" ? Infinity : Number(labels.le);
      edges.set(edge, (edges.get(edge) ?? 0) + sign * value);
    }
  }
  return [...edges].sort(([a], [b]) => a - b);
}

function bucketQuantile(edges, q) {
  const all = edges.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  let low = 0, seen = 0;
  for (const [edge, upTo] of edges) {
    if (upTo >= q * all) {
      if (edge === Infinity) return low;
      return low + (edge - low) * (upTo > seen ? (q * all - seen) / (upTo - seen) : 1);
    }
    [low, seen] = [edge, upTo];
  }
  return low;
}
