// One ledger: its metadata, the bookies that store it, and its entries as text or hexadecimal bytes.

import { get, remove } from "/console/api.js";
import { confirm } from "/console/ask.js";
import { button, bytes, card, count, empty, facts, h, moment, pill, show, table } from "/console/dom.js";
import { forget, STATES } from "/console/ledgers.js";

const COUNT = 20;

function hex(data) {
  const rows = [];
  for (let at = 0; at < data.length; at += 16) {
    const line = [...data.slice(at, at + 16)];
    const digits = line.map((one) => one.toString(16).padStart(2, "0"));
    rows.push(`${at.toString(16).padStart(6, "0")}  ${digits.slice(0, 8).join(" ").padEnd(23)}  ${digits.slice(8).join(" ").padEnd(23)}  `
      + line.map((one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : "·")).join(""));
  }
  return rows.join("\n");
}

const plain = (data) => new TextDecoder("utf-8").decode(data).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "·");

function entry(one, asHex) {
  const data = Uint8Array.from(atob(one.data), (letter) => letter.charCodeAt(0));
  return h("article", { class: "entry" },
    h("header", {}, h("b", { class: "mono" }, `entry ${one.entry}`), h("span", { class: "note" }, bytes(one.bytes, 0),
      data.length < one.bytes ? `, the first ${bytes(data.length, 0)} shown` : "")),
    h("pre", { tabindex: "0" }, data.length ? (asHex ? hex(data) : plain(data)) : "(empty)"));
}

function reader(ledger) {
  const place = h("div", { class: "entries" }, h("p", { class: "note" }, "Entries are read as a client does. The ledger is not fenced."));
  const first = h("input", { class: "input short", name: "first", inputmode: "numeric", value: "0", "aria-label": "First entry" });
  let asHex = false, found = null;
  const draw = () => show(place, found === null ? [] : found.length ? found.map((one) => entry(one, asHex))
    : empty("No entries", "The ledger ends before this entry, or no entry is confirmed yet."));
  const read = async (from) => {
    first.value = String(Math.max(0, from));
    try {
      found = (await get("/api/console/entries", { ledger_id: ledger, first: first.value, count: COUNT })).entries;
      draw();
    } catch (error) {
      found = null;
      show(place, empty("Read failed", error.message));
    }
  };
  const controls = h("form", { class: "search", onsubmit: (event) => { event.preventDefault(); read(Number(first.value) || 0); } },
    h("label", { class: "field" }, "From entry", first), h("button", { type: "submit", class: "button primary" }, "Read"),
    button("Earlier", () => read(Number(first.value) - COUNT)), button("Later", () => read(Number(first.value) + COUNT)),
    h("div", { class: "choice", role: "group", "aria-label": "Shown as" },
      [["Text", false], ["Hex", true]].map(([title, wanted]) => h("button", {
        type: "button", class: "button", "aria-pressed": wanted === asHex,
        onclick: (event) => {
          asHex = wanted;
          for (const one of event.target.parentNode.children) one.setAttribute("aria-pressed", String(one === event.target));
          draw();
        } }, title))));
  read(0);
  return card("Entries", {}, controls, place);
}

function segments(one) {
  return card("Ensembles", { note: `${one.segments.length} segments` }, table([
    ["From entry", (row) => count(row.firstEntry), "number"],
    ["Bookies, in order of striping", (row) => h("span", { class: "tags" }, row.bookies.map((bookie) =>
      h("span", { class: `tag mono ${one.missing.includes(bookie) ? "bad" : ""}` }, bookie, one.missing.includes(bookie) ? " lost" : ""))), "wide"],
  ], one.segments, { label: "Ensembles" }));
}

const drop = (one) => () => confirm({
  title: `Delete ledger ${one.ledgerId}?`,
  text: "Its metadata is deleted now, its entries by the next garbage collection. This cannot be undone.",
  verb: "Delete permanently", typed: String(one.ledgerId), danger: true,
  act: async () => { await remove("/api/v1/ledger/delete", { ledger_id: one.ledgerId }); return `Ledger ${one.ledgerId} was deleted`; },
  done: () => { forget(); location.hash = "#/ledgers"; },
});

export const ledgerView = {
  everyMs: 0,
  async load(argument) {
    if (!/^\d+$/.test(argument)) throw new Error(`${argument} is not a ledger id`);
    return get("/api/console/ledger", { ledger_id: argument });
  },
  draw: (one, { session }) => [
    h("p", { class: "crumbs" }, h("a", { href: "#/ledgers" }, "Ledgers"), " / ", h("span", { class: "mono" }, one.ledgerId)),
    card(`Ledger ${one.ledgerId}`, { actions: session.admin ? button("Delete…", drop(one), { kind: "danger", key: "delete" }) : null }, facts([
      ["State", pill(one.state.toLowerCase().replace("_", " "), STATES[one.state])],
      one.missing.length ? ["Under-replicated on", one.missing.join(", ")] : null,
      ["Size", one.closed ? bytes(one.length) : "known once closed"],
      ["Last entry", one.closed ? count(one.lastEntryId) : "known once closed"],
      ["Ensemble / write / ack", `${one.ensembleSize} / ${one.writeQuorumSize} / ${one.ackQuorumSize}`],
      ["Digest", one.digestType],
      ["Created (UTC)", moment(one.ctime)],
      ["Metadata format", `${one.metadataFormatVersion}, stored version ${one.version}`],
      ...Object.entries(one.custom).map(([key, value]) => [key, h("span", { class: "mono break" }, value)]),
    ])),
    segments(one),
    reader(one.ledgerId),
  ],
};
