// The bookie that serves this page: charts, disks, garbage collection, and the actions of an operator.

import { get, put } from "/console/api.js";
import { confirm } from "/console/ask.js";
import { ago, button, bytes, card, count, empty, facts, h, meter, percent, pill, room, table } from "/console/dom.js";
import { caches, latency, throughput } from "/console/plots.js";

const LEVELS = { ok: "good", warn: "warn", full: "bad", bad: "bad" };
const GC = "/api/v1/bookie/gc";

function modeCard(self, { session, refresh }) {
  const readOnly = self.reasons.includes("operator");
  const flip = () => confirm({
    title: readOnly ? "Make this bookie writable?" : "Make this bookie read-only?",
    text: readOnly ? "Clients can choose it for new ledgers again."
      : "Each writer replaces it in its ledger by an ensemble change. Reads continue.",
    verb: readOnly ? "Make writable" : "Make read-only",
    act: async () => { await put("/api/v1/bookie/state/readonly", { readOnly: !readOnly }); return readOnly ? "The bookie is writable" : "The bookie is read-only"; },
    done: refresh,
  });
  const flush = () => confirm({
    title: "Flush now?", text: "The write caches are written to entry logs and index, and journal files that are no longer needed are deleted.", verb: "Flush",
    act: async () => { await put("/api/console/checkpoint"); return "The write caches were flushed"; }, done: refresh,
  });
  return card("State", {
    actions: session.operator ? [button(readOnly ? "Make writable…" : "Make read-only…", flip, { key: "mode" }), button("Flush now…", flush, { key: "flush" })] : null,
  }, facts([
    ["Mode", pill(self.state, self.state === "writable" ? "good" : self.state === "read-only" ? "warn" : "bad")],
    self.reasons.length ? ["Reasons", self.reasons.join(", ")] : null,
    ["Bookie", h("span", { class: "mono" }, self.bookie)],
    ["Version", self.version],
    ...self.marks.map((mark) => [self.marks.length > 1 ? `Last mark of journal ${mark.journal}` : "Last mark",
      h("span", { class: "mono" }, `${mark.file.toString(16)}.txn at ${count(mark.position)}`)]),
  ]));
}

function disks(self) {
  return card("Disks", {}, table([
    ["Directory", (one) => h("span", { class: "mono break" }, one.path)],
    ["Kind", (one) => one.kind],
    ["Used", (one) => (one.total === null ? h("span", { class: "note" }, one.problem) : room(one.free, one.total, one.path, self.limits)), "wide"],
    ["State", (one) => pill(one.level, LEVELS[one.level] ?? "bad")],
  ], self.disks, { label: "Disks" }));
}

function garbage(self, { session, refresh }) {
  const found = self.garbage;
  if (!found) return card("Garbage collection", {}, empty("Not started yet"));
  const force = (body, what) => () => confirm({
    title: `${what} now?`, text: "The space of deleted ledgers is reclaimed. Compaction copies live entries at the configured rate.",
    verb: "Start", act: async () => { await put(GC, body); return "Garbage collection was started"; }, done: refresh,
  });
  const suspend = (kind, on) => () => confirm({
    title: `${on ? "Suspend" : "Resume"} ${kind} compaction?`,
    text: on ? "A running compaction stops after its current entry log, and none starts until it is resumed or the bookie restarts." : "It runs again when it is due.",
    verb: on ? "Suspend" : "Resume",
    act: async () => { await put(`${GC}/${on ? "suspend" : "resume"}_compaction`, { [`${on ? "suspend" : "resume"}${kind === "major" ? "Major" : "Minor"}`]: true });
      return `${kind === "major" ? "Major" : "Minor"} compaction is ${on ? "suspended" : "resumed"}`; },
    done: refresh,
  });
  const c = found.counters;
  const live = c.gc_entry_log_space_bytes ? c.gc_active_entry_log_space_bytes / c.gc_entry_log_space_bytes : null;
  return card("Garbage collection", {
    actions: session.operator ? [
      button("Collect…", force({ forceMajor: false, forceMinor: false }, "Collect garbage"), { key: "collect" }),
      button("Minor…", force({ forceMajor: false, forceMinor: true }, "Run minor compaction"), { key: "minor" }),
      button("Major…", force({ forceMajor: true, forceMinor: true }, "Run major compaction"), { key: "major" }),
      button(found.minorSuspended ? "Resume minor…" : "Suspend minor…", suspend("minor", !found.minorSuspended), { key: "hold-minor" }),
      button(found.majorSuspended ? "Resume major…" : "Suspend major…", suspend("major", !found.majorSuspended), { key: "hold-major" }),
    ] : null,
  },
  found.alarm ? h("div", { class: "banner" }, found.alarm) : null,
  facts([
    ["Status", found.running ? h("span", {}, pill("running", "good"), " ", found.doing || "collecting",
      found.logsInAll ? ` (${found.logsDone} of ${found.logsInAll} logs)` : "") : pill("idle", "plain")],
    ["Suspended", [found.majorSuspended ? "major" : "", found.minorSuspended ? "minor" : ""].filter(Boolean).join(", ") || "no"],
    ["Last collection", ago(found.lastCycleMs, self.nowMs)],
    ["Last minor compaction", ago(found.lastMinorMs, self.nowMs)],
    ["Last major compaction", ago(found.lastMajorMs, self.nowMs)],
    ["Entry logs", `${count(c.gc_active_entry_log_total)}, ${bytes(c.gc_entry_log_space_bytes)}`],
    ["Live data", live === null ? "–" : percent(live)],
    ["Space reclaimed", bytes((c.gc_reclaimed_compaction_space_bytes ?? 0) + (c.gc_reclaimed_deletion_space_bytes ?? 0))],
    ["Ledgers deleted", count(c.gc_deleted_ledger_total)],
  ]));
}

function scrub(self) {
  const found = self.scrub;
  if (!found) return card("Scrub", {}, empty("Not started yet"));
  const state = found.paused ? pill("paused", "warn") : found.running ? pill("running", "good") : pill("idle", "plain");
  const share = found.running && found.bytesInAll ? ` ${percent(found.bytesDone / found.bytesInAll)} of ${bytes(found.bytesInAll)}` : "";
  return card("Scrub", { note: "verifies entry logs in the background" }, facts([
    ["Status", h("span", {}, state, share)],
    ["Rate", found.rate ? `${bytes(found.rate)}/s` : "no limit"],
    ["Last pass", ago(found.endedMs, self.nowMs)],
    ["Damage found", found.found ? pill(count(found.found), "warn") : count(0)],
    ["Repaired", count(found.repaired)],
    ["Ledgers in quarantine", self.quarantined ? pill(count(self.quarantined), "bad") : count(0)],
    ["Unrepairable", found.unrepairable ? pill(count(found.unrepairable), "bad") : count(0)],
  ]));
}

export const bookieView = {
  everyMs: 2000,
  load: () => get("/api/console/bookie"),
  draw: (self, tools) => [
    h("div", { class: "columns" }, modeCard(self, tools), garbage(self, tools)),
    card("Throughput", { note: "while this page is open, at most five minutes" }, h("div", { class: "charts" }, throughput())),
    card("Latency", { note: "from request to response, inside this bookie" }, h("div", { class: "charts" }, latency())),
    card("Caches and journal", {}, h("div", { class: "charts" }, caches())),
    h("div", { class: "columns" }, disks(self), scrub(self)),
  ],
};
