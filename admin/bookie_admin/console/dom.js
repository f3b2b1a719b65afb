// Builds elements from plain values. Text only ever becomes text nodes, so data of ledgers cannot inject markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "width%") element.style.width = `${value}%`;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const s = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// Replace the content of an element, and keep the focus on the element with the same key.
export function show(element, ...children) {
  const key = document.activeElement?.dataset?.key;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  if (key) element.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

export const card = (title, ...rest) => {
  const [options, ...children] = rest[0] && rest[0].constructor === Object ? rest : [{}, ...rest];
  return h("section", { class: `card ${options.class ?? ""}` },
    h("div", { class: "card-head" },
      h("h2", {}, title, options.note ? h("span", { class: "note" }, options.note) : null),
      options.actions ? h("div", { class: "actions" }, options.actions) : null),
    children);
};

export const button = (text, act, options = {}) =>
  h("button", {
    type: "button", class: `button ${options.kind ?? ""}`, onclick: act, disabled: options.disabled,
    title: options.title, "data-key": options.key ?? text,
  }, text);

export const pill = (text, kind) => h("span", { class: `pill ${kind}` }, text);
export const empty = (title, text) => h("div", { class: "empty" }, h("strong", {}, title), text ? h("p", {}, text) : null);

// `columns`: [title, function from a row to its cell, class]. There may be no rows.
export function table(columns, rows, options = {}) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label ?? "Table" },
    h("table", {},
      h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title)))),
      h("tbody", {}, rows.map((row) =>
        h("tr", {}, columns.map(([title, cell, kind]) => h("td", { class: kind, "data-title": title }, cell(row))))))));
}

// A meter that shows a share from 0 to 1.
export function meter(share, kind = "", label = "") {
  const percent = Math.max(0, Math.min(100, 100 * (share ?? 0)));
  return h("div", { class: `meter ${kind}`, role: "meter", "aria-valuenow": percent.toFixed(0), "aria-valuemin": 0,
    "aria-valuemax": 100, "aria-label": label || "share" }, h("div", { class: "meter-fill", "width%": percent.toFixed(2) }));
}

export const facts = (pairs) => h("dl", { class: "facts" },
  pairs.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))));

// --- formatting numbers -------------------------------------------------------------------------------------------

const group = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function bytes(value, digits = 1) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 ? group.format(value) : value.toFixed(value >= 100 ? 0 : digits)} ${units[unit]}`;
}

export function count(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10 && !Number.isInteger(value)) return value.toFixed(1);
  if (Math.abs(value) < 100000) return group.format(value);
  return value < 1e6 ? `${(value / 1e3).toFixed(0)} k` : value < 1e9 ? `${(value / 1e6).toFixed(2)} M` : `${(value / 1e9).toFixed(2)} G`;
}

export const percent = (share, digits = 1) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`);

export function millis(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return `${(value / 1000).toFixed(value >= 10000 ? 0 : 1)} s`;
  return value >= 10 ? `${value.toFixed(0)} ms` : `${value.toFixed(2)} ms`;
}

export function ago(atMs, nowMs) {
  if (!atMs) return "never";
  const seconds = Math.max(0, (nowMs - atMs) / 1000);
  if (seconds < 90) return `${seconds.toFixed(0)} s ago`;
  if (seconds < 5400) return `${(seconds / 60).toFixed(0)} min ago`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(0)} h ago` : `${(seconds / 86400).toFixed(0)} days ago`;
}

export const moment = (atMs) => (atMs > 0 ? new Date(atMs).toISOString().replace("T", " ").slice(0, 19) : "–");
