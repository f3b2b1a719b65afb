// Dialogs: confirmation of an action, entry of a token, and short messages about the outcome.

import { signIn } from "/console/api.js";
import { button, h, show } from "/console/dom.js";

const dialog = document.getElementById("dialog");
const toasts = document.getElementById("toasts");

export function toast(text, kind = "good") {
  const note = h("div", { class: `toast ${kind}` }, h("span", {}, text),
    h("button", { type: "button", class: "icon", "aria-label": "Close", onclick: () => note.remove() }, "×"));
  toasts.append(note);
  while (toasts.children.length > 4) toasts.firstChild.remove();
  setTimeout(() => note.remove(), kind === "bad" ? 12000 : 5000);
}

function open(title, content, actions) {
  show(dialog, h("form", { method: "dialog", class: "dialog-form" },
    h("h2", { id: "dialog-title" }, title), content, h("div", { class: "actions end" }, actions)));
  dialog.showModal();
}

// Ask for confirmation, perform the action, show the outcome. `typed` is a text that the user must type to confirm an
// action that cannot be undone.
export function confirm({ title, text, verb, typed = "", danger = false, act, done }) {
  const field = typed
    ? h("input", { class: "input", autocomplete: "off", spellcheck: "false", "aria-label": `Type ${typed}` }) : null;
  const go = h("button", { type: "submit", class: `button ${danger ? "danger" : "primary"}`, disabled: Boolean(typed) }, verb);
  field?.addEventListener("input", () => { go.disabled = field.value.trim() !== typed; });
  const content = [h("p", {}, text), field ? h("label", { class: "field" }, `Type ${typed} to confirm`, field) : null];
  open(title, content.filter(Boolean), [button("Cancel", () => dialog.close()), go]);
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      const said = await act();
      toast(typeof said === "string" && said ? said : "Done");
      await done?.();
    } catch (error) {
      toast(error.message, "bad");
    } finally {
      dialog.close();
    }
  });
  (field ?? dialog.querySelector("button")).focus();
}

export function askToken(text, done) {
  if (dialog.open) return;
  const field = h("input", { class: "input", type: "password", autocomplete: "off", "aria-label": "Token" });
  open("Sign in", [h("p", {}, text), h("label", { class: "field" }, "Token from adminTokensFile", field)],
    [button("Cancel", () => dialog.close()), h("button", { type: "submit", class: "button primary" }, "Sign in")]);
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    signIn(field.value);
    dialog.close();
    done();
  });
  field.focus();
}
