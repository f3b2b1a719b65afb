// Line charts over time as SVG, redrawn at each sample; the legend shows the values under the pointer.

import { h, s, show } from "/console/dom.js";

const WIDTH_MAX = 560, MARGINS = 60, HEIGHT = 168, LEFT = 58, RIGHT = 8, TOP = 10, BOTTOM = 22;

function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((one) => one * power).find((one) => one >= value);
}

// `lines`: [{ name, kind, values: [number or null] }] over `times` in ms; `text` formats a value; `least` is the smallest
// upper end of the scale, so that noise stays small.
export function chart(title, { times, lines, text, spanMs, least }) {
  const now = times.at(-1) ?? 0;
  const width = Math.min(WIDTH_MAX, window.innerWidth - MARGINS);   // keeps letters readable on a phone
  const known = lines.flatMap((line) => line.values.filter((one) => one !== null));
  const top = ceiling(Math.max(...known, least));
  const x = (at) => LEFT + (width - LEFT - RIGHT) * (1 - (now - at) / spanMs);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const base = y(0);
  const drawing = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, class: "plot", role: "img", "aria-label": title });
  for (const share of [0, 0.5, 1]) {
    drawing.append(s("line", { x1: LEFT, x2: width - RIGHT, y1: y(top * share), y2: y(top * share), class: "grid" }),
      s("text", { x: LEFT - 8, y: y(top * share) + 4, class: "tick end" }, text(top * share)));
  }
  for (const share of [1, 0.5, 0]) {
    const minutes = (spanMs * share) / 60000;
    drawing.append(s("text", { x: x(now - spanMs * share), y: HEIGHT - 5, class: `tick ${share ? (share < 1 ? "mid" : "") : "end"}` },
      share ? `−${minutes % 1 ? minutes.toFixed(1) : minutes} min` : "now"));
  }
  if (!known.length) drawing.append(s("text", { x: (LEFT + width) / 2, y: y(top / 2) - 8, class: "tick mid" }, "no data in this period"));
  for (const line of lines) {
    for (const run of runs(times, line.values)) {
      const points = run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
      drawing.append(s("path", { class: `area ${line.kind}`, d: `M${points.join("L")}L${x(run.at(-1)[0])},${base}L${x(run[0][0])},${base}Z` }),
        s("path", { class: `line ${line.kind}`, d: `M${points.join("L")}` }));
    }
  }
  const hair = s("line", { class: "hair", y1: TOP, y2: base, x1: -9, x2: -9 });
  drawing.append(hair);
  const legend = h("div", { class: "legend" });
  const tell = (at) => show(legend, lines.map((line) => h("span", { class: `key ${line.kind}` }, line.name, " ",
    h("b", {}, line.values[at] === null || line.values[at] === undefined ? "–" : text(line.values[at])))));
  tell(times.length - 1);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const at = now - spanMs * (1 - ((event.clientX - box.left) / box.width * width - LEFT) / (width - LEFT - RIGHT));
    const nearest = times.reduce((best, one, k) => (Math.abs(one - at) < Math.abs(times[best] - at) ? k : best), 0);
    if (!times.length) return;
    hair.setAttribute("x1", x(times[nearest]));
    hair.setAttribute("x2", x(times[nearest]));
    tell(nearest);
  });
  drawing.addEventListener("pointerleave", () => { hair.setAttribute("x1", -9); hair.setAttribute("x2", -9); tell(times.length - 1); });
  return h("figure", { class: "chart" }, h("figcaption", {}, h("h3", {}, title), legend), drawing);
}

function runs(times, values) {
  const found = [];
  let run = [];
  values.forEach((value, k) => {
    if (value === null) { if (run.length) found.push(run); run = []; } else run.push([times[k], value]);
  });
  if (run.length) found.push(run);
  return found;
}
