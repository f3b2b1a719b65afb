// Auto-recovery: its switch and auditor, under-replicated ledgers, and bookies that are being decommissioned.

import { get, put } from "/console/api.js";
import { confirm } from "/console/ask.js";
import { ago, button, card, count, empty, facts, h, meter, pill, table } from "/console/dom.js";

const API = "/api/v1/autorecovery";

function actions(data, refresh) {
  const flip = () => confirm({
    title: data.enabled ? "Disable auto-recovery?" : "Enable auto-recovery?",
    text: data.enabled ? "In the entire cluster, until it is enabled again: lost replicas are not copied meanwhile. Use this during planned restarts."
      : "Replication workers in the entire cluster copy under-replicated ledgers again.",
    verb: data.enabled ? "Disable" : "Enable", danger: data.enabled,
    act: async () => { await put(`${API}/status`, undefined, { enabled: !data.enabled }); return `Auto-recovery is ${data.enabled ? "disabled" : "enabled"}`; },
    done: refresh,
  });
  const audit = () => confirm({
    title: "Look for lost bookies now?", text: "The auditor compares the registered bookies with those in the metadata of ledgers.", verb: "Audit",
    act: () => put(`${API}/trigger_audit`), done: refresh,
  });
  return [button(data.enabled ? "Disable…" : "Enable…", flip, { key: "switch" }),
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
      title: `Decommission bookie ${bookie}?`,
      text: "It must be stopped. The replication workers of the cluster copy all its ledgers to other bookies; this page shows the progress.",
      verb: "Decommission", typed: bookie, danger: true,
      act: () => put(`${API}/decommission`, { bookie_src: bookie, delete_cookie: String(keep.checked) }),
      done: () => { field.blur(); return refresh(); },
    });
  };
  return card("Decommissioning", {},
    session.operator ? h("form", { class: "search", onsubmit: go }, h("label", { class: "field" }, "Stopped bookie", field),
      h("label", { class: "check" }, keep, "delete its cookie at the end"), h("button", { type: "submit", class: "button danger" }, "Decommission…")) : null,
    data.moves.length ? table([
      ["Bookie", (one) => h("span", { class: "mono" }, one.bookie)],
      ["State", (one) => (one.error ? pill("failed", "bad") : one.ended_ms ? pill(one.blocked && Object.keys(one.blocked).length ? "blocked" : "done", "good") : pill(one.paused ? "paused" : "running", one.paused ? "warn" : "good"))],
      ["Copied", (one) => (one.total === null ? "listing" : h("div", { class: "room" }, meter(one.total ? 1 - one.remaining / one.total : 1, "", "copied"),
        h("span", { class: "note" }, `${count(one.total - one.remaining)} of ${count(one.total)} ledgers`))), "wide"],
      ["Rate", (one) => (one.per_s ? `${one.per_s.toFixed(2)}/s` : "–"), "number"],
      ["Time left", (one) => (one.eta_s === null ? "–" : `${count(Math.ceil(one.eta_s))} s`), "number"],
      ["Remarks", (one) => one.error || Object.entries(one.blocked ?? {}).slice(0, 3).map(([ledger, why]) => `${ledger}: ${why}`).join("; ") || "–", "wide"],
    ], data.moves, { label: "Decommissioning" }) : empty("None", "Decommission a bookie before its machine is removed for good."));
}

export const recoveryView = {
  everyMs: 4000,
  still: true,
  load: () => get("/api/console/recovery"),
  draw: (data, tools) => [
    card("Auto-recovery", { actions: tools.session.operator ? actions(data, tools.refresh) : null }, facts([
      ["In this cluster", pill(data.enabled ? "enabled" : "disabled", data.enabled ? "good" : "warn")],
      ["Auditor", data.auditor ? h("span", { class: "mono" }, data.auditor) : ["none: set autoRecovery", h("wbr"), "DaemonEnabled, or run bkadmin autorecovery"]],
      ["Delay after a bookie is lost", data.delayS === null ? "not set" : `${count(data.delayS)} s`],
      ["Under-replicated ledgers", data.count ? pill(count(data.count), "warn") : data.auditor ? pill("none", "good") : pill("unknown", "warn")],
    ])),
    card("Under-replicated ledgers", { note: data.marks.length < data.count ? `the first ${data.marks.length} of ${data.count}` : "" },
      data.marks.length ? table([
        ["Ledger", (one) => h("a", { href: `#/ledger/${one.ledger}`, class: "mono" }, one.ledger)],
        ["Missing on", (one) => h("span", { class: "tags" }, one.missing.map((bookie) => h("span", { class: "tag mono" }, bookie))), "wide"],
        ["Marked", (one) => (one.sinceMs ? ago(one.sinceMs, data.nowMs) : "–"), "nowrap"],
        ["Worker", (one) => (one.worker ? h("span", { class: "mono" }, one.worker) : "–")],
      ], data.marks, { label: "Under-replicated ledgers" }) : data.auditor ? empty("All ledgers are fully replicated", "No ledger is waiting to be copied.")
        : empty("No ledger is marked", "No auditor is elected, so nothing looks for lost replicas.")),
    emptying(data, tools),
  ],
};
