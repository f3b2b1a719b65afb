// Auto-recovery: its switch and auditor, ledgers that lack replicas, bookies that are being emptied.

import { get, put } from "/console/api.js";
import { confirm } from "/console/ask.js";
import { ago, button, card, count, empty, facts, h, meter, pill, table } from "/console/dom.js";

const API = "/api/v1/autorecovery";

function actions(data, refresh) {
  const flip = () => confirm({
    title: data.enabled ? "Switch auto-recovery off?" : "Switch auto-recovery on?",
    text: data.enabled ? "For the whole cluster, until somebody switches it on: lost replicas are not copied meanwhile. For planned restarts."
      : "Replicators of the whole cluster take ledgers again.",
    verb: data.enabled ? "Switch off" : "Switch on", danger: data.enabled,
    act: async () => { await put(`${API}/status`, undefined, { enabled: !data.enabled }); return `Auto-recovery is ${data.enabled ? "off" : "on"}`; },
    done: refresh,
  });
  const audit = () => confirm({
    title: "Look for lost bookies now?", text: "The auditor compares who is registered with what ledgers name.", verb: "Look",
    act: () => put(`${API}/trigger_audit`), done: refresh,
  });
  return [button(data.enabled ? "Switch off…" : "Switch on…", flip, { key: "switch" }),
    button("Audit now…", audit, { key: "audit", disabled: !data.auditor, title: data.auditor ? "" : "No auditor is elected" })];
}

function emptying(data, { session, refresh }) {
  const field = h("input", { class: "input", name: "bookie", placeholder: "host:3181", autocomplete: "off", spellcheck: "false", "data-key": "bookie" });
  const keep = h("input", { type: "checkbox", name: "cookie" });
  const go = (event) => {
    event.preventDefault();
    const bookie = field.value.trim();
    if (!bookie) { field.focus(); return; }
    confirm({
      title: `Empty bookie ${bookie}?`,
      text: "It must be stopped. Everything on it is copied to others by the replicators of the cluster; this bookie follows until nothing is left.",
      verb: "Empty it", typed: bookie, danger: true,
      act: () => put(`${API}/decommission`, { bookie_src: bookie, delete_cookie: String(keep.checked) }),
      done: () => { field.blur(); return refresh(); },
    });
  };
  return card("Bookies being emptied", {},
    session.operator ? h("form", { class: "search", onsubmit: go }, h("label", { class: "field" }, "Bookie that is stopped", field),
      h("label", { class: "check" }, keep, "delete its cookie at the end"), h("button", { type: "submit", class: "button danger" }, "Empty…")) : null,
    data.moves.length ? table([
      ["Bookie", (one) => h("span", { class: "mono" }, one.bookie)],
      ["State", (one) => (one.error ? pill("failed", "bad") : one.ended_ms ? pill(one.blocked && Object.keys(one.blocked).length ? "blocked" : "empty", "good") : pill(one.paused ? "paused" : "running", one.paused ? "warn" : "good"))],
      ["Copied", (one) => (one.total === null ? "looking" : h("div", { class: "room" }, meter(one.total ? 1 - one.remaining / one.total : 1, "", "copied"),
        h("span", { class: "note" }, `${count(one.total - one.remaining)} of ${count(one.total)} ledgers`))), "wide"],
      ["Pace", (one) => (one.per_s ? `${one.per_s.toFixed(2)}/s` : "–"), "number"],
      ["Left", (one) => (one.eta_s === null ? "–" : `${count(Math.ceil(one.eta_s))} s`), "number"],
      ["Remarks", (one) => one.error || Object.entries(one.blocked ?? {}).slice(0, 3).map(([ledger, why]) => `${ledger}: ${why}`).join("; ") || "–", "wide"],
    ], data.moves, { label: "Bookies being emptied" }) : empty("None", "Empty a bookie before its machine goes for good."));
}

export const recoveryView = {
  everyMs: 4000,
  still: true,
  load: () => get("/api/console/recovery"),
  draw: (data, tools) => [
    card("Auto-recovery", { actions: tools.session.operator ? actions(data, tools.refresh) : null }, facts([
      ["In this cluster", pill(data.enabled ? "on" : "off", data.enabled ? "good" : "warn")],
      ["Auditor", data.auditor ? h("span", { class: "mono" }, data.auditor) : ["none: set autoRecovery", h("wbr"), "DaemonEnabled, or run bkadmin autorecovery"]],
      ["A bookie may be away", data.delayS === null ? "not set" : `${count(data.delayS)} s`],
      ["Ledgers that lack replicas", data.count ? pill(count(data.count), "warn") : data.auditor ? pill("none", "good") : pill("unknown", "warn")],
    ])),
    card("Ledgers that lack replicas", { note: data.marks.length < data.count ? `the first ${data.marks.length} of ${data.count}` : "" },
      data.marks.length ? table([
        ["Ledger", (one) => h("a", { href: `#/ledger/${one.ledger}`, class: "mono" }, one.ledger)],
        ["Lacks a replica on", (one) => h("span", { class: "tags" }, one.missing.map((bookie) => h("span", { class: "tag mono" }, bookie))), "wide"],
        ["Marked", (one) => (one.sinceMs ? ago(one.sinceMs, data.nowMs) : "–"), "nowrap"],
        ["Copied by", (one) => (one.worker ? h("span", { class: "mono" }, one.worker) : "–")],
      ], data.marks, { label: "Ledgers that lack replicas" }) : data.auditor ? empty("All ledgers are whole", "Nothing waits for copies.")
        : empty("No ledger is marked", "Nobody looks for lost replicas: no auditor is elected.")),
    emptying(data, tools),
  ],
};
