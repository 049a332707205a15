// SPDX-License-Identifier: Apache-2.0
// Keyboard shortcuts, and the dialog that lists them.

import { byId, make } from "./dom";

export interface Key {
  keys: string[];
  /** How the dialog writes it. */
  shown: string;
  does: string;
  act: (event: KeyboardEvent) => void;
}

/** Keys work everywhere but where something is typed or chosen. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement ? target.type !== "checkbox" : target instanceof HTMLSelectElement;
}

export function listen(keys: Key[]): void {
  const dialog = byId("keys") as HTMLDialogElement;
  const rows = keys.map(({ shown, does }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("kbd", { textContent: shown })),
      make("td", { textContent: does }),
    ),
  );
  const hints = [
    "Drag over a chart to zoom, double-click for the whole run.",
    "Tab reaches everything; in the table arrow keys go up and down and space selects.",
    "Grey lines are the boards that are not selected. A flag on the charts is a change made from a page.",
  ];
  dialog.replaceChildren(
    make("h2", { id: "keys-title", textContent: "Keys" }),
    make("table", { className: "pairs" }, make("tbody", {}, ...rows)),
    ...hints.map((hint) => make("p", { textContent: hint })),
    make("form", { method: "dialog" }, make("button", { textContent: "Close" })),
  );
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || dialog.open) return;
    // Space presses the button that has the focus, and arrows walk through the table.
    const native =
      event.target instanceof HTMLButtonElement ||
      event.target instanceof HTMLInputElement ||
      (event.target as HTMLElement).tagName === "SUMMARY";
    if (native && [" ", "Enter", "ArrowUp", "ArrowDown"].includes(event.key)) return;
    const key = keys.find((candidate) => candidate.keys.includes(event.key));
    if (!key) return;
    event.preventDefault();
    key.act(event);
  });
}

export function showKeys(): void {
  (byId("keys") as HTMLDialogElement).showModal();
}
