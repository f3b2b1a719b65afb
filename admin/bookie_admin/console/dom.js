// Builds elements from plain values. Text only ever becomes text nodes, so data of ledgers cannot inject markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "width%") element.style.width = `${value}%`;
    else if (name === "left%") element.style.left = `${value}%`;
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

const before = (a, b) => (a === b ? 0 : a === null || a === undefined ? -1 : b === null || b === undefined ? 1 : a < b ? -1 : 1);

// Narrow windows have no header, so they sort with a list of the columns.
function sorter(columns, sort, draw) {
  const choose = h("select", { class: "input", "aria-label": "Sort by", "data-key": "sort", onchange: (event) => { sort.by = event.target.value; draw(); } },
    columns.filter((one) => one[3]).map(([title]) => h("option", { value: title, selected: title === sort.by }, title)));
  const turn = h("button", { type: "button", class: "button", "data-key": "turn", onclick: () => { sort.down = !sort.down; draw(); } },
    sort.down ? "Descending" : "Ascending");
  return h("div", { class: "sort-narrow" }, choose, turn);
}

function heading([title, , kind, key], sort, draw) {
  if (!key || !sort) return h("th", { scope: "col", class: kind }, title);
  const here = sort.by === title;
  return h("th", { scope: "col", class: kind, "aria-sort": here ? (sort.down ? "descending" : "ascending") : "none" },
    h("button", { type: "button", class: "sorter", "data-key": `by ${title}`, onclick: () => { sort.down = here && !sort.down; sort.by = title; draw(); } },
      title, here ? (sort.down ? " ↓" : " ↑") : ""));
}

// `columns`: [title, function from a row to its cell, class, function from a row to what it is sorted by]. There may be
// no rows. `options.sort` is {by: title, down}, which the caller keeps; without it, rows stay as they are.
export function table(columns, rows, options = {}) {
  const sort = options.sort;
  const place = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label ?? "Table" });
  const draw = () => {
    const key = sort && columns.find(([title]) => title === sort.by)?.[3];
    const shown = key ? [...rows].sort((a, b) => before(key(a), key(b)) * (sort.down ? -1 : 1)) : rows;
    show(place, sort ? sorter(columns, sort, draw) : null, h("table", {},
      h("thead", {}, h("tr", {}, columns.map((one) => heading(one, sort, draw)))),
      h("tbody", {}, shown.map((row) =>
        h("tr", {}, columns.map(([title, cell, kind]) => h("td", { class: kind, "data-title": title }, cell(row))))))));
  };
  draw();
  return place;
}

// A meter that shows a share from 0 to 1, with a line at each of `limits`.
export function meter(share, kind = "", label = "", limits = []) {
  const percent = Math.max(0, Math.min(100, 100 * (share ?? 0)));
  return h("div", { class: `meter ${kind}`, role: "meter", "aria-valuenow": percent.toFixed(0), "aria-valuemin": 0,
    "aria-valuemax": 100, "aria-label": label || "share" }, h("div", { class: "meter-fill", "width%": percent.toFixed(2) }),
    limits.map((at) => h("i", { class: "meter-limit", "left%": (100 * at).toFixed(2) })));
}

// The use of a disk, coloured by the thresholds `limits` of the configuration: {warn, full}.
export function room(free, total, label, limits) {
  const used = 1 - free / total;
  return h("div", { class: "room", title: `warns at ${percent(limits.warn, 0)}, read-only above ${percent(limits.full, 0)}` },
    meter(used, used > limits.full ? "bad" : used > limits.warn ? "warn" : "", `${label}: used`, [limits.warn, limits.full]),
    h("span", { class: "note" }, `${percent(used, 0)} used, ${bytes(free)} free of ${bytes(total)}`));
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
