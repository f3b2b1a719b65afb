// All keys of the bookie's configuration with their values in effect.

import { get } from "/console/api.js";
import { card, count, empty, h, show, table } from "/console/dom.js";

let filter = "";

export const configurationView = {
  everyMs: 0,
  load: () => get("/api/v1/config/server_config"),
  draw(found) {
    const every = Object.entries(found).sort(([a], [b]) => a.localeCompare(b));
    const place = h("div", {});
    const draw = () => {
      const rows = every.filter(([name, value]) => `${name}=${value}`.toLowerCase().includes(filter.toLowerCase()));
      show(place, rows.length ? table([
        ["Key", ([name]) => h("span", { class: "mono" }, name)],
        ["Value", ([, value]) => (value === "" ? h("span", { class: "note" }, "unset") : h("span", { class: "mono break" }, value)), "wide"],
      ], rows, { label: "Configuration" }) : empty("No matching key", filter));
    };
    const field = h("input", { class: "input", value: filter, placeholder: "part of a key or value", autocomplete: "off", spellcheck: "false",
      oninput: (event) => { filter = event.target.value; draw(); } });
    draw();
    return card("Configuration", { note: `${count(every.length)} keys; secrets are masked` }, h("div", { class: "search" }, h("label", { class: "field" }, "Find", field)), place);
  },
};
