// All keys of the bookie's configuration with their values in effect, and which of them differ from the default.

import { get } from "/console/api.js";
import { card, count, empty, h, show, table } from "/console/dom.js";

let filter = "";
let changedOnly = false;
const sort = { by: "Key", down: false };

const text = (value) => (value === "" ? h("span", { class: "note" }, "unset") : h("span", { class: "mono break" }, value));

export const configurationView = {
  everyMs: 0,
  load: () => get("/api/console/configuration"),
  draw(found) {
    const every = Object.entries(found).sort(([a], [b]) => a.localeCompare(b));
    const changed = every.filter(([, one]) => one.changed);
    const place = h("div", {});
    const draw = () => {
      const wanted = filter.toLowerCase();
      const rows = (changedOnly ? changed : every).filter(([name, one]) => `${name}=${one.value}`.toLowerCase().includes(wanted));
      show(place, rows.length ? table([
        ["Key", ([name, one]) => h("div", {}, h("span", { class: "mono break" }, name),
          one.changed ? h("span", { class: "here" }, "changed") : null, h("p", { class: "note" }, one.about.replaceAll("`", ""))), "about", ([name]) => name.toLowerCase()],
        ["Value", ([, one]) => text(one.value), "wide", ([, one]) => one.value],
        ["Default", ([, one]) => text(one.default), "wide", ([, one]) => one.default],
      ], rows, { label: "Configuration", sort }) : empty("No matching key", filter || "Every key has its default."));
    };
    const field = h("input", { class: "input", value: filter, placeholder: "part of a key or value", autocomplete: "off", spellcheck: "false",
      oninput: (event) => { filter = event.target.value; draw(); } });
    const only = h("label", { class: "check" }, h("input", { type: "checkbox", checked: changedOnly,
      onchange: (event) => { changedOnly = event.target.checked; draw(); } }), `only the ${count(changed.length)} that differ from the default`);
    draw();
    return card("Configuration", { note: `${count(every.length)} keys; secrets are masked` },
      h("div", { class: "search" }, h("label", { class: "field" }, "Find", field), only), place);
  },
};
