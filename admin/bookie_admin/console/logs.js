// Logs, which are named lists of ledgers, and the ledgers and writers of one of them.

import { get } from "/console/api.js";
import { button, bytes, card, count, empty, facts, h, moment, pill, table } from "/console/dom.js";
import { STATES } from "/console/ledgers.js";

const sort = { by: "Log", down: false };
const search = { text: "" };
let pages = [];
let shown = { name: "", pages: [] };

const fetchLogs = (after) => get("/api/console/logs", { text: search.text, after, limit: 100 });
const fetchLog = (name, first) => get("/api/console/log", { name, first, limit: 100 });

function more(fetch, into, next, refresh) {
  return next === null ? null : h("div", { class: "actions end" }, button("More", async (event) => {
    event.target.disabled = true;
    into.push(await fetch(next));
    refresh();
  }, { key: "more" }));
}

export const logsView = {
  everyMs: 0,
  still: true,
  async load() {
    if (!pages.length) pages = [await fetchLogs(null)];
    return pages;
  },
  draw(found, { refresh }) {
    const rows = found.flatMap((page) => page.logs);
    const go = (event) => {
      event.preventDefault();
      search.text = new FormData(event.target).get("text").trim();
      pages = [];
      document.activeElement?.blur();
      refresh();
    };
    return card("Logs", { note: "named lists of ledgers", actions: button("Refresh", () => { pages = []; refresh(); }, { key: "refresh" }) },
      h("form", { class: "search", onsubmit: go }, h("label", { class: "field" }, "Part of a name", h("input", { class: "input", name: "text",
        value: search.text, autocomplete: "off", spellcheck: "false", "data-key": "text" })), h("button", { type: "submit", class: "button primary" }, "Search")),
      rows.length ? table([
        ["Log", (one) => h("a", { href: `#/log/${encodeURIComponent(one.log)}`, class: "break" }, one.log), "", (one) => one.log],
        ["Ledgers", (one) => count(one.ledgers), "number", (one) => one.ledgers],
        ["Newest ledger", (one) => (one.newest === null ? "–" : h("a", { href: `#/ledger/${one.newest}`, class: "mono" }, one.newest)), "number", (one) => one.newest],
        ["Writers", (one) => count(one.writers), "number", (one) => one.writers],
        ["Created (UTC)", (one) => moment(one.createdMs), "nowrap", (one) => one.createdMs],
      ], rows, { label: "Logs", sort }) : empty(search.text ? "No matching log" : "No logs yet", search.text || "A log is created with its first ledger."),
      more(fetchLogs, pages, found.at(-1).next, refresh));
  },
};

export const logView = {
  everyMs: 0,
  async load(name) {
    if (shown.name !== name) shown = { name, pages: [] };
    if (!shown.pages.length) shown.pages = [await fetchLog(name, 0)];
    return shown.pages;
  },
  draw(found, { refresh }) {
    const one = found[0];
    const rows = found.flatMap((page) => page.ledgers);
    const again = () => { shown = { name: "", pages: [] }; refresh(); };
    return [
      h("p", { class: "crumbs" }, h("a", { href: "#/logs" }, "Logs"), " / ", h("span", { class: "break" }, one.log)),
      card("Log", { note: one.log, actions: button("Refresh", again, { key: "refresh" }) }, facts([
        ["Ledgers", count(one.count)], ["Created (UTC)", moment(one.createdMs)], ["Stored version", one.version],
        ...Object.entries(one.writers).map(([writer, batch]) => [`Last batch of writer ${writer}`, String(batch)]),
      ])),
      card("Ledgers", { note: "in the order in which they are read" }, rows.length ? table([
        ["Ledger", (row) => (row.state === "DELETED" ? h("span", { class: "mono" }, row.ledger) : h("a", { href: `#/ledger/${row.ledger}`, class: "mono" }, row.ledger))],
        ["State", (row) => pill(row.state.toLowerCase().replace("_", " "), STATES[row.state] ?? "bad")],
        ["Size", (row) => (row.state === "CLOSED" ? bytes(row.length) : "–"), "number"],
        ["Entries", (row) => (row.state === "CLOSED" ? count(row.lastEntry + 1) : "–"), "number"],
        ["Created (UTC)", (row) => moment(row.createdMs), "nowrap"],
      ], rows, { label: "Ledgers of the log" }) : empty("No ledgers"), more((next) => fetchLog(one.log, next), found, found.at(-1).next, refresh)),
    ];
  },
};
