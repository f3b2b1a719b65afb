// The bookie that serves this page: its charts, disks, garbage collection, and what an operator may order.

import { get, put } from "/console/api.js";
import { confirm } from "/console/ask.js";
import { ago, button, bytes, card, count, empty, facts, h, meter, percent, pill, table } from "/console/dom.js";
import { caches, latency, throughput } from "/console/plots.js";

const LEVELS = { ok: "good", warn: "warn", full: "bad", bad: "bad" };
const GC = "/api/v1/bookie/gc";

function modeCard(self, { session, refresh }) {
  const readOnly = self.reasons.includes("operator");
  const flip = () => confirm({
    title: readOnly ? "Take writes again?" : "Make this bookie read-only?",
    text: readOnly ? "Clients may choose it for new ledgers again."
      : "Writers replace it in their ledgers, which costs them an ensemble change each. Reads go on.",
    verb: readOnly ? "Writable" : "Read-only",
    act: async () => { await put("/api/v1/bookie/state/readonly", { readOnly: !readOnly }); return readOnly ? "The bookie takes writes" : "The bookie is read-only"; },
    done: refresh,
  });
  const flush = () => confirm({
    title: "Flush now?", text: "Both write caches go to entry logs and index, and journals before them are removed.", verb: "Flush",
    act: async () => { await put("/api/console/checkpoint"); return "Flushed"; }, done: refresh,
  });
  return card("State", {
    actions: session.operator ? [button(readOnly ? "Take writes" : "Read-only…", flip, { key: "mode" }), button("Flush now…", flush, { key: "flush" })] : null,
  }, facts([
    ["Mode", pill(self.state, self.state === "writable" ? "good" : self.state === "read-only" ? "warn" : "bad")],
    self.reasons.length ? ["Because of", self.reasons.join(", ")] : null,
    ["Bookie", h("span", { class: "mono" }, self.bookie)],
    ["Version", self.version],
    ...self.marks.map((mark) => [self.marks.length > 1 ? `Checkpoint of journal ${mark.journal}` : "Checkpoint",
      h("span", { class: "mono" }, `${mark.file.toString(16)}.txn at ${count(mark.position)}`)]),
  ]));
}

function disks(self) {
  return card("Disks", {}, table([
    ["Directory", (one) => h("span", { class: "mono break" }, one.path)],
    ["For", (one) => one.kind],
    ["Used", (one) => (one.total === null ? h("span", { class: "note" }, one.problem) : h("div", { class: "room" },
      meter(1 - one.free / one.total, one.level === "ok" ? "" : LEVELS[one.level], `${one.path}: used`),
      h("span", { class: "note" }, `${percent(1 - one.free / one.total, 0)}, ${bytes(one.free)} free`))), "wide"],
    ["State", (one) => pill(one.level, LEVELS[one.level] ?? "bad")],
  ], self.disks, { label: "Disks" }));
}

function garbage(self, { session, refresh }) {
  const found = self.garbage;
  if (!found) return card("Garbage collection", {}, empty("Not started yet"));
  const force = (body, what) => () => confirm({
    title: `${what} now?`, text: "Space of deleted ledgers is given back. Compactions copy what is still needed, at the configured pace.",
    verb: "Begin", act: async () => { await put(GC, body); return "The collection begins"; }, done: refresh,
  });
  const suspend = (kind, on) => () => confirm({
    title: `${on ? "Suspend" : "Resume"} ${kind} compaction?`,
    text: on ? "None begins, and one that runs ends behind its present entry log. It stays so until resumed or restarted." : "It runs again when it is due.",
    verb: on ? "Suspend" : "Resume",
    act: async () => { await put(`${GC}/${on ? "suspend" : "resume"}_compaction`, { [`${on ? "suspend" : "resume"}${kind === "major" ? "Major" : "Minor"}`]: true });
      return `${kind} compaction is ${on ? "suspended" : "resumed"}`; },
    done: refresh,
  });
  const c = found.counters;
  const live = c.gc_entry_log_space_bytes ? c.gc_active_entry_log_space_bytes / c.gc_entry_log_space_bytes : null;
  return card("Garbage collection", {
    actions: session.operator ? [
      button("Collect…", force({ forceMajor: false, forceMinor: false }, "Collect"), { key: "collect" }),
      button("Minor…", force({ forceMajor: false, forceMinor: true }, "Minor compaction"), { key: "minor" }),
      button("Major…", force({ forceMajor: true, forceMinor: true }, "Major compaction"), { key: "major" }),
      button(found.minorSuspended ? "Resume minor…" : "Suspend minor…", suspend("minor", !found.minorSuspended), { key: "hold-minor" }),
      button(found.majorSuspended ? "Resume major…" : "Suspend major…", suspend("major", !found.majorSuspended), { key: "hold-major" }),
    ] : null,
  },
  found.alarm ? h("div", { class: "banner" }, found.alarm) : null,
  facts([
    ["Now", found.running ? h("span", {}, pill("running", "good"), " ", found.doing || "collecting",
      found.logsInAll ? ` (${found.logsDone} of ${found.logsInAll} logs)` : "") : pill("idle", "plain")],
    ["Suspended", [found.majorSuspended ? "major" : "", found.minorSuspended ? "minor" : ""].filter(Boolean).join(", ") || "no"],
    ["Last collection", ago(found.lastCycleMs, self.nowMs)],
    ["Last minor", ago(found.lastMinorMs, self.nowMs)],
    ["Last major", ago(found.lastMajorMs, self.nowMs)],
    ["Entry logs", `${count(c.gc_active_entry_log_total)}, ${bytes(c.gc_entry_log_space_bytes)}`],
    ["Live share", live === null ? "–" : percent(live)],
    ["Given back", bytes((c.gc_reclaimed_compaction_space_bytes ?? 0) + (c.gc_reclaimed_deletion_space_bytes ?? 0))],
    ["Ledgers deleted", count(c.gc_deleted_ledger_total)],
  ]));
}

function scrub(self) {
  const found = self.scrub;
  if (!found) return card("Scrub", {}, empty("Not started yet"));
  const state = found.paused ? pill("paused", "warn") : found.running ? pill("running", "good") : pill("idle", "plain");
  const share = found.running && found.bytesInAll ? ` ${percent(found.bytesDone / found.bytesInAll)} of ${bytes(found.bytesInAll)}` : "";
  return card("Scrub", { note: "entry logs read again, at a pace" }, facts([
    ["Now", h("span", {}, state, share)],
    ["Pace", found.rate ? `${bytes(found.rate)}/s` : "no limit"],
    ["Last pass", ago(found.endedMs, self.nowMs)],
    ["Damage found", found.found ? pill(count(found.found), "warn") : count(0)],
    ["Repaired", count(found.repaired)],
    ["Ledgers in quarantine", self.quarantined ? pill(count(self.quarantined), "bad") : count(0)],
    ["Cannot be repaired", found.unrepairable ? pill(count(found.unrepairable), "bad") : count(0)],
  ]));
}

export const bookieView = {
  everyMs: 2000,
  load: () => get("/api/console/bookie"),
  draw: (self, tools) => [
    h("div", { class: "columns" }, modeCard(self, tools), garbage(self, tools)),
    card("Throughput", { note: "while this page is open, at most five minutes" }, h("div", { class: "charts" }, throughput())),
    card("Latency", { note: "as clients wait for it here" }, h("div", { class: "charts" }, latency())),
    card("Caches and journal", {}, h("div", { class: "charts" }, caches())),
    h("div", { class: "columns" }, disks(self), scrub(self)),
  ],
};
