// SPDX-License-Identifier: Apache-2.0
// The text next to the charts: tiles with an overview of the run, choice of queue, counters, settings, notes.

import { byId, make, setText } from "./dom";
import * as format from "./format";
import type { Scene } from "./frames";
import { queueName } from "./model";
import type { Bottleneck, Summary, SwitchInForce } from "./protocol";

/** Sum over all senders of their latest values; NaN if none has one. */
function total({ model, view }: Scene, series: string): number {
  const values = model.manifest.senders.map((sender) => model.latest(sender.series[series], view.row));
  const there = values.filter((value) => !Number.isNaN(value));
  return there.length ? there.reduce((sum, value) => sum + value, 0) : NaN;
}

/** CNPs that all senders of the run have received: available when it is over. */
function received({ model }: Scene): number {
  const { boards, flows } = model.summary ?? {};
  const counted = (flows ?? []).map((flow) => flow.cnps ?? 0);
  return boards || flows ? counted.reduce((sum, cnps) => sum + cnps, 0) : NaN;
}

/** Buffer and thresholds of a switch, as the run's table has them. */
function inForce(found: SwitchInForce): string {
  const range = (values: (number | null)[]) => {
    const there = values.filter((value) => value !== null);
    const least = Math.min(...there),
      most = Math.max(...there);
    return least === most ? format.bytes(least) : `${format.bytes(least)} to ${format.bytes(most)}`;
  };
  const parts = [`buffer ${format.bytes(found.buffer_bytes)}`];
  const add = (name: string, values: (number | null)[]) => {
    if (values.some((value) => value !== null)) parts.push(`${name} ${range(values)}`);
  };
  add(
    "K_min",
    found.ports.map((port) => port.kmin_bytes),
  );
  add(
    "K_max",
    found.ports.map((port) => port.kmax_bytes),
  );
  add(
    "X_off",
    found.ports.map((port) => port.xoff_bytes),
  );
  add(
    "X_on",
    found.ports.map((port) => port.xon_bytes),
  );
  add(
    "headroom",
    found.ports.map((port) => port.headroom_bytes),
  );
  parts.push(
    found.pfc === "off" ? "no PFC" : `PFC ${found.pfc}${found.alpha === null ? "" : `, alpha ${found.alpha}`}`,
  );
  return parts.join(", ");
}

/** Which senders a sum over the shown ones is of. */
function shown({ model: { manifest } }: Scene): string {
  const { senders, all_senders: all } = manifest;
  return senders.length < all
    ? `the first ${format.count(senders.length)} of ${format.count(all)} ${noun(manifest.kind)}`
    : `all ${format.count(all)} ${noun(manifest.kind)}`;
}

/** The results of a run that is over, unless a moment of it is looked at. */
function results({ model, view }: Scene): Summary | null {
  return model.progress.phase === "ended" && view.cursor === null ? model.summary : null;
}

/** What the whole run has stored, or carried where it stores nothing; NaN: it is not over. */
function stored(scene: Scene): number {
  const summary = results(scene);
  return summary?.readout?.goodput_gbps ?? summary?.aggregate_gbps ?? NaN;
}

/** The bottleneck of a run that is over, if it is the queue that is shown. */
function bottleneck(scene: Scene): Bottleneck | null {
  const found = results(scene)?.verdict?.bottleneck ?? null;
  const name = scene.model.manifest.queues[scene.queue]?.name ?? "";
  return found && name.startsWith(queueName(found)) ? found : null;
}

/** Throughput of all senders, including those that are not shown, where the run reports it. */
function wholeThroughput(scene: Scene): number {
  const { model, view } = scene;
  const all = model.manifest.totals.find((total) => total.name === "all flows");
  const reported = model.manifest.kind === "lab" ? model.latest(all?.column, view.row) : NaN;
  return Number.isNaN(reported) ? throughput(scene) : reported;
}

/** Sum of all throughputs, each as a mean of 0.1 ms: single packets would make it flicker. */
function throughput({ model, view }: Scene): number {
  const rows = Math.max(1, Math.round(0.1 / (model.stepMs || 1)));
  let sum = 0,
    count = 0;
  for (const sender of model.manifest.senders) {
    const column = model.column(sender.series.throughput);
    let total = 0,
      seen = 0;
    for (let row = view.row; row >= 0 && row > view.row - rows - 2 && seen < rows; row--) {
      const value = column[row] ?? NaN;
      if (value === value) {
        total += value;
        seen++;
      }
    }
    if (seen) {
      sum += total / seen;
      count++;
    }
  }
  return count ? sum : NaN;
}

interface Tile {
  name: string;
  value: (scene: Scene) => string;
  of: (scene: Scene) => string;
}

const TILES: Tile[] = [
  {
    name: "Throughput",
    value: (scene) => {
      const whole = stored(scene);
      return `${format.fixed(Number.isNaN(whole) ? wholeThroughput(scene) / 1e9 : whole, 2)} Gb/s`;
    },
    of: (scene) => {
      const { manifest } = scene.model;
      const senders = `${format.count(manifest.all_senders)} ${noun(manifest.kind)}`;
      if (Number.isNaN(stored(scene)))
        return `${manifest.throughput === "payload" ? "payload" : "on the wire"}, ${senders}`;
      return `${results(scene)?.readout ? "stored" : "payload"} over the whole run, ${senders}`;
    },
  },
  {
    name: "Queue",
    value: (scene) => {
      const { model, view, queue } = scene;
      const latest = model.latest(model.manifest.queues[queue]?.series.depth, view.row);
      return format.bytes(bottleneck(scene)?.peak_queue_bytes ?? latest);
    },
    of: (scene) => {
      const name = scene.model.manifest.queues[scene.queue]?.name ?? "";
      return bottleneck(scene) ? `at most, ${name}, the bottleneck` : name;
    },
  },
  {
    name: "Packets marked",
    value: ({ model, view, queue }) =>
      format.count(model.latest(model.manifest.queues[queue]?.series.marked, view.row)),
    of: () => "ECN, so far",
  },
  {
    name: "CNPs",
    value: (scene) => {
      const all = received(scene);
      return format.count(Number.isNaN(all) ? total(scene, "cnp_handled") : all);
    },
    of: (scene) =>
      Number.isNaN(received(scene))
        ? `that cut the rate of ${shown(scene)}, so far`
        : `received by all; ${format.count(total(scene, "cnp_handled"))} cut the rate of ${shown(scene)}`,
  },
  {
    name: "",
    value: ({ model: { progress } }) => format.count(progress.done),
    of: ({ model: { progress } }) => `of ${format.count(progress.total)} ${progress.unit}`,
  },
  {
    name: "Simulated",
    value: ({ model }) => format.time(model.progress.now_ps / 1e9, 0.01),
    of: ({ model: { progress } }) =>
      `${format.fixed(progress.wall_s, 1)} s of real time, ${format.slowdown(progress.wall_s, progress.now_ps)}`,
  },
];

function noun(kind: string): string {
  return kind === "lab" ? "flows" : "boards";
}

/** What the run means, and what its switches had in force. */
function verdict(summary: Summary | null): HTMLElement[] {
  const sentences = summary?.verdict?.sentences ?? [];
  if (!sentences.length) return [];
  const lines = sentences.map((sentence) => make("li", { textContent: sentence }));
  const switches = (summary?.switches ?? []).map((found) =>
    make("tr", {}, make("th", { scope: "row", textContent: found.name }), make("td", { textContent: inForce(found) })),
  );
  return [
    make("h2", { textContent: "Verdict" }),
    make("ul", { id: "verdict" }, ...lines),
    make(
      "details",
      {},
      make("summary", { textContent: "Switches: buffers and thresholds in force" }),
      make("table", { className: "pairs", id: "in-force" }, make("tbody", {}, ...switches)),
    ),
  ];
}

export class Details {
  private tiles: { tile: Tile; value: HTMLElement; of: HTMLElement }[] = [];
  private live: { cell: HTMLElement; column: number; unit: string }[] = [];
  private counters = make("tbody");
  private shownOf = "";

  constructor(private readonly chooseQueue: (queue: number) => void) {}

  build({ model, queue }: Scene): void {
    const { manifest, summary } = model;
    this.tiles = TILES.filter((tile) => manifest.kind !== "board" || tile.name !== "").map((tile) => ({
      tile,
      value: make("dd"),
      of: make("dd", { className: "of" }),
    }));
    byId("tiles").replaceChildren(
      ...this.tiles.map(({ tile, value, of }) =>
        make(
          "div",
          {},
          make("dt", { textContent: tile.name || (manifest.kind === "lab" ? "Flows done" : "Events built") }),
          value,
          of,
        ),
      ),
    );
    setText(byId("senders-title"), manifest.kind === "lab" ? "Flows" : "Boards");

    const parts: HTMLElement[] = verdict(summary);
    parts.push(...manifest.notes.map((note) => make("p", { className: "note", textContent: note })));
    if (model.stride > 1)
      parts.push(
        make("p", {
          className: "note",
          textContent: `A long run: one sample in ${model.stride} is kept here, and the mean of throughputs; trace.parquet has all.`,
        }),
      );
    if (manifest.queues.length > 1) {
      const choice = make(
        "select",
        { id: "queue" },
        ...manifest.queues.map(({ name }, n) =>
          make("option", { value: String(n), textContent: name, selected: n === queue }),
        ),
      );
      choice.addEventListener("change", () => this.chooseQueue(Number(choice.value)));
      parts.push(make("label", { className: "line" }, make("span", { textContent: "Queue shown" }), choice));
    }
    this.live = manifest.totals.map(({ column, unit }) => ({ cell: make("td"), column, unit }));
    const rows = manifest.totals.map(({ name }, n) =>
      make("tr", {}, make("th", { scope: "row", textContent: name }), this.live[n]?.cell ?? ""),
    );
    parts.push(
      make(
        "table",
        { className: "pairs" },
        make("caption", { className: "hidden", textContent: "The whole run" }),
        make("tbody", {}, ...rows),
      ),
    );
    parts.push(
      make("h2", { textContent: "Counters" }),
      make(
        "table",
        { className: "pairs wide" },
        make("caption", { className: "hidden", textContent: "Counters of the selected senders" }),
        this.counters,
      ),
    );
    if (summary?.settings) {
      const all = Object.entries(summary.settings).map(([key, value]) =>
        make("tr", {}, make("th", { scope: "row", textContent: key }), make("td", { textContent: value })),
      );
      parts.push(
        make(
          "details",
          {},
          make("summary", { textContent: "All settings" }),
          make("table", { className: "pairs" }, make("tbody", {}, ...all)),
        ),
      );
    }
    byId("details").replaceChildren(...parts);
    this.shownOf = "";
  }

  update(scene: Scene): void {
    for (const { tile, value, of } of this.tiles) {
      setText(value, tile.value(scene));
      setText(of, tile.of(scene));
    }
    for (const { cell, column, unit } of this.live)
      setText(cell, format.value(scene.model.latest(column, scene.view.row), unit));
    this.count(scene);
  }

  /** Counters of the selected senders side by side: at the cursor, and those of the gateware when the run is over. */
  private count(scene: Scene): void {
    const { model, view, selection } = scene;
    const chosen = selection.all
      .slice(0, 4)
      .map(({ sender, colour }) => ({ sender: model.manifest.senders[sender], colour }));
    const finals = new Map((model.summary?.boards ?? []).map((board) => [board.name, board.counters ?? {}]));
    const names = new Set(chosen.flatMap(({ sender }) => Object.keys(sender?.counters ?? {})));
    const all = chosen.map(({ sender }) => finals.get(sender?.name ?? "") ?? {});
    const last = new Set(all.flatMap((counters) => Object.keys(counters).filter((name) => counters[name] !== 0)));
    const zeros = new Set(all.flatMap((counters) => Object.keys(counters))).size - last.size;
    const shape = `${chosen.map(({ sender }) => sender?.name).join()} ${[...names].join()} ${[...last].join()}`;
    if (shape !== this.shownOf) {
      this.shownOf = shape;
      const head = make(
        "tr",
        {},
        make("td", { textContent: chosen.length ? "" : "Select a sender to see its counters." }),
      );
      for (const { sender, colour } of chosen) {
        const cell = make("th", { scope: "col", textContent: sender?.name ?? "" });
        cell.style.setProperty("--sender-colour", `var(--series-${colour + 1})`);
        head.append(cell);
      }
      const row = (name: string) =>
        make("tr", {}, make("th", { scope: "row", textContent: name }), ...chosen.map(() => make("td")));
      const heading = make(
        "tr",
        { className: "heading" },
        make("th", { textContent: `gateware, at the end (${zeros} more are 0)`, colSpan: chosen.length + 1 }),
      );
      this.counters.replaceChildren(
        head,
        ...[...names].map(row),
        ...(last.size ? [heading, ...[...last].map(row)] : []),
      );
    }
    const cells = [...this.counters.rows];
    chosen.forEach(({ sender }, n) => {
      [...names].forEach((name, at) => {
        const cell = cells[1 + at]?.cells[n + 1];
        if (cell) setText(cell, format.count(model.latest(sender?.counters[name], view.row)));
      });
      [...last].forEach((name, at) => {
        const cell = cells[2 + names.size + at]?.cells[n + 1];
        if (cell) setText(cell, format.count(finals.get(sender?.name ?? "")?.[name] ?? NaN));
      });
    });
  }
}
