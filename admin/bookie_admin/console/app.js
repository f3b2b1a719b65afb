// The frame of the console: the current view and its refresh, the signed-in role, keyboard shortcuts, light and dark theme.

import { get, Refused, signedIn } from "/console/api.js";
import { askToken, toast } from "/console/ask.js";
import { bookieView } from "/console/bookie.js";
import { configurationView } from "/console/configuration.js";
import { button, empty, h, pill, show } from "/console/dom.js";
import { EVERY_MS, sample } from "/console/history.js";
import { ledgerView } from "/console/ledger.js";
import { ledgersView } from "/console/ledgers.js";
import { logsView, logView } from "/console/logs.js";
import { overviewView } from "/console/overview.js";
import { recoveryView } from "/console/recovery.js";

const TABS = [
  ["overview", "Cluster", overviewView],
  ["bookie", "This bookie", bookieView],
  ["ledgers", "Ledgers", ledgersView],
  ["logs", "Logs", logsView],
  ["recovery", "Recovery", recoveryView],
  ["configuration", "Configuration", configurationView],
];
const main = document.getElementById("main");
const session = { self: null, operator: false, admin: false, locked: false };
let current = { view: null, argument: "", timer: 0, number: 0 };

const place = () => {
  const [name, argument] = location.hash.replace(/^#\//, "").split("/");
  return { name: name || "overview", argument: decodeURIComponent(argument ?? "") };
};

function viewOf(name) {
  if (name === "ledger") return ledgerView;
  if (name === "log") return logView;
  return TABS.find(([tab]) => tab === name)?.[2] ?? null;
}

function drawTabs(name) {
  const at = ["ledger", "log"].includes(name) ? `${name}s` : name;
  show(document.getElementById("tabs"), TABS.map(([tab, title], k) =>
    h("a", { href: `#/${tab}`, "aria-current": tab === at ? "page" : null, title: `${title} (${k + 1})`, "data-key": tab }, title)));
  document.querySelector("#tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function drawStatus() {
  const self = session.self;
  const kinds = { writable: "good", "read-only": "warn" };
  show(document.getElementById("status"), self ? [
    h("span", { class: "who", title: `bookie ${self.bookie}, version ${self.version}` }, self.bookie),
    pill(self.state, kinds[self.state] ?? "bad"),
    self.guarded ? h("button", { type: "button", class: "link", onclick: () => offerToken("Enter another token, or leave it empty to sign out.") },
      self.role) : null,
  ] : pill(session.locked ? "locked" : "offline", session.locked ? "warn" : "bad"));
  document.title = self ? `${self.bookie} · bookie` : "bookie";
}

function banner(error) {
  show(document.getElementById("banner"), error ? h("div", { class: "banner" }, h("span", {}, error.message),
    error.status === 401 ? button("Sign in", () => offerToken(error.message)) : button("Try again", () => refresh())) : []);
}

const offerToken = (text) => askToken(text, () => { refresh(); watch(); });

async function refresh() {
  const { view, argument, number } = current;
  if (!view) return;
  try {
    const data = await view.load(argument, session);
    if (number !== current.number) return;
    banner(null);
    main.classList.remove("stale");
    draw(view, data, argument);
  } catch (error) {
    if (number === current.number) failed(error);
  }
}

function failed(error) {
  banner(error);
  main.classList.add("stale");
  if (main.querySelector(".loading")) show(main, empty(error.status === 404 ? "Not found" : "No data", error.message));
  if (error.status === 401 && !signedIn()) offerToken("This bookie requires a token.");
  if (!(error instanceof Refused)) console.error(error);
}

function draw(view, data, argument) {
  // Do not redraw while the user types, has selected text, or points at a chart.
  if (view.still && main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) return;
  if (main.querySelector(".plot:hover")) return;
  const selected = getSelection();
  if (selected && !selected.isCollapsed && main.contains(selected.anchorNode)) return;
  show(main, h("div", { class: "view" }, view.draw(data, { session, argument, refresh })));
}

function go() {
  const { name, argument } = place();
  clearInterval(current.timer);
  const view = viewOf(name);
  current = { view, argument, timer: 0, number: current.number + 1 };
  drawTabs(name);
  banner(null);
  main.classList.remove("stale");
  if (!view) {
    show(main, empty("Page not found", "Choose one of the views above."));
    return;
  }
  show(main, h("div", { class: "loading", "aria-label": "Loading" }, h("i"), h("i"), h("i")));
  window.scrollTo(0, 0);
  refresh();
  if (view.everyMs) current.timer = setInterval(() => { if (!document.hidden) refresh(); }, view.everyMs);
}

// Load the state of this bookie for all views, and a sample of its metrics for the charts.
async function watch() {
  try {
    session.self = await get("/api/console/bookie");
    session.operator = ["operate", "admin"].includes(session.self.role);
    session.admin = session.self.role === "admin";
    await sample();
  } catch (error) {
    if (error.status === 0 || error.status === 401) session.self = null;
    session.locked = error.status === 401;
  }
  drawStatus();
}

function theme(wanted) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  const next = wanted ?? (now === "dark" ? "light" : "dark");
  document.documentElement.dataset.theme = next;
  localStorage.setItem("bookie-theme", next);
}

document.getElementById("theme").addEventListener("click", () => theme());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  if (document.getElementById("dialog").open) return;
  const tab = TABS[Number(event.key) - 1];
  if (tab) location.hash = `#/${tab[0]}`;
  else if (event.key === "t") theme();
  else if (event.key === "r") refresh();
  else if (event.key === "/") {
    event.preventDefault();
    if (place().name === "ledgers") main.querySelector("input")?.focus();
    else location.hash = "#/ledgers";
  } else if (event.key === "?") toast("1–6: views · /: search ledgers · r: refresh · t: light or dark theme", "plain");
});
const kept = localStorage.getItem("bookie-theme");
if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
window.addEventListener("hashchange", go);
document.addEventListener("visibilitychange", () => { if (!document.hidden) { watch(); refresh(); } });
await watch();
go();
setInterval(() => { if (!document.hidden) watch(); }, EVERY_MS);
