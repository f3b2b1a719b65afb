// The cluster: its bookies with their disks and placement weights, and its state of replication.

import { get } from "/console/api.js";
import { bytes, card, count, empty, h, percent, pill, room, table } from "/console/dom.js";
import { throughput } from "/console/plots.js";

const KINDS = { writable: "good", "read-only": "warn", absent: "bad" };

const sort = { by: "Bookie", down: false };

const tile = (title, value, note, kind = "") =>
  h("div", { class: `tile ${kind}` }, h("span", { class: "tile-title" }, title), h("strong", {}, value), h("span", { class: "note" }, note));

// Without an auditor no ledger is ever marked as under-replicated, so the absence of marks says nothing.
function replication(info) {
  const state = info.clusterUnderReplicated ? "behind" : info.auditorElected ? "complete" : "unknown";
  const note = !info.ledgerReplicationEnabled ? "auto-recovery is disabled" : state === "unknown" ? "no auditor looks for lost replicas" : "auto-recovery is enabled";
  return tile("Replication", state, note, state === "complete" && info.ledgerReplicationEnabled ? "" : "warn");
}

function tiles({ info, bookies }) {
  const known = bookies.filter((one) => one.total);
  const total = known.reduce((sum, one) => sum + one.total, 0), free = known.reduce((sum, one) => sum + one.free, 0);
  const silent = bookies.filter((one) => one.error).length;
  return h("div", { class: "tiles" },
    tile("Writable", count(info.writableBookiesCount), `of ${count(info.totalBookiesCount)} bookies`, info.writableBookiesCount ? "" : "bad"),
    tile("Read-only", count(info.readonlyBookiesCount), info.readonlyBookiesCount ? "reject writes" : "none", info.readonlyBookiesCount ? "warn" : ""),
    tile("Absent", count(info.unavailableBookiesCount), silent ? `${silent} registered, but not answering` : info.unavailableBookiesCount ? "have a cookie, but are not registered" : "none",
      info.unavailableBookiesCount || silent ? "bad" : ""),
    tile("Free space", total ? bytes(free) : "–", total ? `of ${bytes(total)}, ${percent(free / total, 0)}` : "no bookie answered"),
    replication(info),
    tile("Auditor", info.auditorElected ? "elected" : "none", info.auditorId || "no bookie runs auto-recovery", ""));
}

const disks = (one, limits) => (one.total ? room(one.free, one.total, one.bookie, limits) : h("span", { class: "note" }, one.error || "–"));

// The consoles of other bookies open in this window; each bookie serves its own.
const name = (one, session) => (one.console && one.bookie !== session.self?.bookie
  ? h("a", { href: one.console, title: "console of this bookie" }, one.bookie) : one.bookie);

const rackRow = (rack, rows) => h("div", { class: "rack" }, h("span", { class: "rack-name" }, rack),
  h("div", { class: "rack-bookies" }, rows.map((one) => h("span", { class: `dot-name ${KINDS[one.state]}`, title: one.state }, one.bookie))));

export const overviewView = {
  everyMs: 5000,
  load: () => get("/api/console/cluster"),
  draw(data, { session }) {
    const racks = Map.groupBy ? Map.groupBy(data.bookies, (one) => one.rack ?? "") : new Map();
    const placed = [...racks].filter(([rack]) => rack).sort(([a], [b]) => (a < b ? -1 : 1));
    return [
      tiles(data),
      card("Bookies", { note: data.instance ? `cluster ${data.instance}` : "" },
        data.bookies.length ? table([
          ["Bookie", (one) => h("span", { class: "mono" }, name(one, session), one.bookie === session.self?.bookie ? h("span", { class: "here" }, "this bookie") : null), "", (one) => one.bookie],
          ["State", (one) => pill(one.state, KINDS[one.state]), "", (one) => one.state],
          ["Disks", (one) => disks(one, data.limits), "wide", (one) => (one.total ? 1 - one.free / one.total : null)],
          ["Weight", (one) => (one.weight === null ? "–" : percent(one.weight)), "number", (one) => one.weight],
          ["Rack", (one) => one.rack ?? "–", "", (one) => one.rack],
          ["Version", (one) => one.version || "–", "nowrap", (one) => one.version],
        ], data.bookies, { label: "Bookies", sort }) : empty("No bookies", "No bookie has registered in this cluster yet.")),
      placed.length ? card("Racks", {}, placed.map(([rack, rows]) => rackRow(rack, rows))) : null,
      card("Throughput of this bookie", { note: "while this page is open, at most five minutes" }, h("div", { class: "charts" }, throughput())),
    ];
  },
};
