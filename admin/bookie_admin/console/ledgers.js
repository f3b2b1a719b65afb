// Search for ledgers by id, custom metadata, state and bookie, with the sum of their sizes.

import { get } from "/console/api.js";
import { button, bytes, card, count, empty, h, moment, pill, table } from "/console/dom.js";

export const STATES = { OPEN: "good", IN_RECOVERY: "warn", CLOSED: "plain" };
const search = { text: "", state: "", bookie: "", order: "newest" };
const sort = { by: "", down: false };
let pages = []; // pages of results, in order

const tags = (custom) => h("span", { class: "tags" }, Object.entries(custom).map(([key, value]) =>
  h("span", { class: "tag", title: `${key}=${value}` }, h("b", {}, key), value.length > 40 ? `${value.slice(0, 40)}…` : value)));

const fetchPage = (after) => get("/api/console/ledgers", { ...search, after, limit: 100 });

function form(refresh) {
  const field = (name, title, hint) => h("label", { class: "field" }, title, h("input", {
    class: "input", name, value: search[name], placeholder: hint, autocomplete: "off", spellcheck: "false", "data-key": name }));
  const state = h("select", { class: "input", name: "state", "data-key": "state" },
    [["", "any"], ["OPEN", "open"], ["IN_RECOVERY", "in recovery"], ["CLOSED", "closed"]].map(([value, title]) =>
      h("option", { value, selected: value === search.state }, title)));
  const order = h("select", { class: "input", name: "order", "data-key": "order" },
    [["newest", "newest first"], ["oldest", "oldest first"]].map(([value, title]) => h("option", { value, selected: value === search.order }, title)));
  const go = (event) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.target));
    if (/^\d+$/.test(given.text.trim())) { location.hash = `#/ledger/${given.text.trim()}`; return; }
    Object.assign(search, { text: given.text.trim(), state: given.state, order: given.order, bookie: given.bookie.trim() });
    pages = [];
    document.activeElement?.blur();
    refresh();
  };
  return h("form", { class: "search", onsubmit: go },
    field("text", "Id or metadata", "42, application=stream, or a word"), h("label", { class: "field" }, "State", state),
    field("bookie", "On bookie", "host:3181"), h("label", { class: "field" }, "Order", order), h("button", { type: "submit", class: "button primary" }, "Search"));
}

function results(found, refresh) {
  const rows = found.flatMap((page) => page.ledgers);
  const add = (name) => found.reduce((sum, page) => sum + page[name], 0);
  const last = found.at(-1);
  if (!rows.length && last.next === null) {
    return empty(search.text || search.state || search.bookie ? "No matching ledger" : "No ledgers yet",
      `${count(add("looked"))} ledgers were searched.`);
  }
  const more = last.next === null ? null : button("Search further", async (event) => {
    event.target.disabled = true;
    pages.push(await fetchPage(last.next));
    refresh();
  }, { key: "more" });
  return [
    h("p", { class: "sums" }, h("b", {}, count(rows.length)), " ledgers", last.next === null ? "" : " so far", " · ",
      h("b", {}, bytes(add("length"))), " in ", h("b", {}, count(add("entries"))), " entries of closed ledgers · ",
      count(add("looked")), " searched"),
    table([
      ["Ledger", (one) => h("a", { href: `#/ledger/${one.ledger}`, class: "mono", "data-key": `l${one.ledger}` }, one.ledger), "", (one) => BigInt(one.ledger)],
      ["State", (one) => pill(one.state.toLowerCase().replace("_", " "), STATES[one.state]), "", (one) => one.state],
      ["Size", (one) => (one.state === "CLOSED" ? bytes(one.length) : "–"), "number", (one) => (one.state === "CLOSED" ? one.length : null)],
      ["Entries", (one) => (one.state === "CLOSED" ? count(one.lastEntry + 1) : "–"), "number", (one) => (one.state === "CLOSED" ? one.lastEntry : null)],
      ["E/W/A", (one) => h("span", { title: "ensemble, write quorum, ack quorum" }, one.quorums), "number", (one) => one.quorums],
      ["Created (UTC)", (one) => moment(one.createdMs), "nowrap", (one) => one.createdMs],
      ["Metadata", (one) => tags(one.custom), "wide"],
    ], rows, { label: "Ledgers", sort }),
    more ? h("div", { class: "actions end" }, more) : null,
  ];
}

export const ledgersView = {
  everyMs: 0,
  still: true,
  async load() {
    if (!pages.length) pages = [await fetchPage(null)];
    return pages;
  },
  draw: (found, { refresh }) => card("Ledgers", {
    actions: button("Refresh", () => { pages = []; refresh(); }, { key: "refresh" }),
  }, form(refresh), results(found, refresh)),
};

export const forget = () => { pages = []; };
