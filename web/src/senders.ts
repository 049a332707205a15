// SPDX-License-Identifier: Apache-2.0
// The table of boards or flows: selection for drawing, and all values at the cursor.
// Promise: the values are those of the trace; a cell's title has the full value. Arrow keys move between rows.

import { byId, indexed, make, setText, setTitle } from "./dom";
import * as format from "./format";
import type { Scene } from "./frames";
import type { Sender } from "./protocol";

interface Column {
  series: string;
  heading: string;
  meaning: string;
  unit: string;
  text: (value: number) => string;
}

const COLUMNS: Column[] = [
  { series: "throughput", heading: "Gb/s", meaning: "Throughput on the wire", unit: "bit/s", text: format.gbps },
  { series: "rate_current", heading: "R_C", meaning: "Current rate, Gb/s", unit: "bit/s", text: format.gbps },
  { series: "rate_target", heading: "R_T", meaning: "Target rate, Gb/s", unit: "bit/s", text: format.gbps },
  {
    series: "alpha",
    heading: "alpha",
    meaning: "Congestion estimate, 0 to 1",
    unit: "",
    text: (value) => format.fixed(value, 3),
  },
  {
    series: "cnp_handled",
    heading: "CNPs",
    meaning: "Congestion notifications handled so far",
    unit: "",
    text: format.count,
  },
  {
    series: "paused",
    heading: "PFC %",
    meaning: "Share of the time in which pauses held it",
    unit: "",
    text: format.percent,
  },
];

interface Row {
  sender: Sender;
  box: HTMLInputElement;
  row: HTMLTableRowElement;
  cells: { cell: HTMLTableCellElement; column: Column }[];
}

export class SenderTable {
  private rows: Row[] = [];

  constructor(private readonly toggle: (sender: number) => void) {}

  /** Makes the rows anew; only when the run is another. */
  build(senders: Sender[]): void {
    const columns = COLUMNS.filter((column) => senders.some((sender) => sender.series[column.series] !== undefined));
    const head = make("tr", {}, make("th", { scope: "col", textContent: "Name" }));
    for (const { heading, meaning } of columns)
      head.append(make("th", { scope: "col", title: meaning }, ...indexed(heading)));
    const body = make("tbody");
    this.rows = senders.map((sender, n) => {
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", () => this.toggle(n));
      const row = make("tr", {}, make("th", { scope: "row" }, make("label", {}, box, sender.name)));
      const cells = columns.map((column) => ({ cell: row.appendChild(make("td")), column }));
      for (const { cell, column } of cells) cell.dataset.series = column.series;
      row.dataset.sender = sender.name;
      body.append(row);
      return { sender, box, row, cells };
    });
    body.addEventListener("keydown", (event) => this.walk(event));
    byId("senders").replaceChildren(
      make("caption", { className: "hidden", textContent: "Values at the cursor" }),
      make("thead", {}, head),
      body,
    );
  }

  update({ model, view, selection }: Scene): void {
    const row = view.row;
    this.rows.forEach((entry, n) => {
      const colour = selection.colour(n);
      const shown = colour === null ? "" : `var(--series-${colour + 1})`;
      if (entry.row.style.getPropertyValue("--sender-colour") !== shown)
        entry.row.style.setProperty("--sender-colour", shown);
      entry.box.checked = colour !== null;
      entry.box.disabled = colour === null && selection.isFull;
      for (const { cell, column } of entry.cells) {
        const number = entry.sender.series[column.series];
        // The newest row may still be open; under the cursor only what the trace has counts.
        const value = view.cursor === null ? model.latest(number, row) : model.value(number, row);
        setText(cell, column.text(value));
        setTitle(cell, Number.isNaN(value) ? "no value" : `${value} ${column.unit}`.trim());
      }
    });
    const at = format.time(model.timeMs(row), model.stepMs);
    setText(byId("when"), row < 0 ? "" : view.cursor === null ? `latest, ${at}` : `at ${at}`);
  }

  private walk(event: KeyboardEvent): void {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const at = this.rows.findIndex((entry) => entry.box === document.activeElement);
    if (!by || at < 0) return;
    event.preventDefault();
    let next = at + by;
    while (this.rows[next]?.box.disabled) next += by;
    this.rows[next]?.box.focus();
  }
}
