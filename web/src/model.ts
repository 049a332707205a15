// SPDX-License-Identifier: Apache-2.0
// The page's model of the run: growing columns of doubles, and their descriptions.
// Promise: values equal those of the trace; NaN if there is none.

import type { Applied, Bottleneck, Hello, Manifest, Progress, Rows, Settings, Stored, Summary } from "./protocol";

/** The name of the queue in front of a link. */
export function queueName({ from, to }: Bottleneck): string {
  return `${from} > ${to}`;
}

const EMPTY = new Float64Array(0);

export class Model {
  manifest: Manifest = {
    title: "",
    kind: "boards",
    interval_ps: 0,
    senders: [],
    all_senders: 0,
    throughput: "wire",
    queues: [],
    totals: [],
    parameters: [],
    notes: [],
    columns: 0,
  };
  settings: Settings = { senders: [], run: {}, ecn: [], threshold_bps: null };
  applied: Applied[] = [];
  progress: Progress = { phase: "running", end: "", now_ps: 0, done: 0, total: 0, unit: "", wall_s: 0, silent: [] };
  summary: Summary | null = null;
  rows = 0;
  stride = 1;
  private columns: Float64Array[] = [];

  /** The queue at the bottleneck of a run that is over, else the first one. */
  get mainQueue(): number {
    const found = this.summary?.verdict?.bottleneck;
    return Math.max(0, found ? this.manifest.queues.findIndex(({ name }) => name.startsWith(queueName(found))) : 0);
  }

  /** Milliseconds of simulated time from one row to the next. */
  get stepMs(): number {
    return (this.manifest.interval_ps * this.stride) / 1e9;
  }

  /** Milliseconds of simulated time of a row. */
  timeMs(row: number): number {
    return row * this.stepMs;
  }

  /** The row nearest to a time, as far as there is one. */
  rowAt(timeMs: number): number {
    const row = this.stepMs > 0 ? Math.round(timeMs / this.stepMs) : 0;
    return Math.max(0, Math.min(this.rows - 1, row));
  }

  /** A column; empty where a sender has no such series. May be longer than `rows`. */
  column(number: number | undefined): Float64Array {
    return number === undefined ? EMPTY : (this.columns[number] ?? EMPTY);
  }

  value(number: number | undefined, row: number): number {
    return row < 0 || row >= this.rows ? NaN : (this.column(number)[row] ?? NaN);
  }

  /** The last value at or before a row: nodes that record late leave the newest rows open. */
  latest(number: number | undefined, row: number): number {
    const column = this.column(number);
    for (let at = Math.min(row, this.rows - 1); at >= 0 && at > row - 64; at--) {
      const value = column[at];
      if (value !== undefined && !Number.isNaN(value)) return value;
    }
    return NaN;
  }

  hello(hello: Hello): void {
    this.manifest = hello.manifest;
    this.stride = hello.stride;
    if (hello.rows === 0 || hello.manifest.columns !== this.columns.length) {
      this.columns = Array.from({ length: hello.manifest.columns }, () => new Float64Array(1024));
      this.rows = 0;
    }
    this.rows = Math.min(this.rows, hello.rows);
  }

  add(rows: Rows): void {
    const count = rows.values[0]?.length ?? 0;
    if (rows.from > this.rows) throw new Error(`rows ${this.rows} to ${rows.from} were never received`);
    const end = rows.from + count;
    this.reserve(end);
    rows.values.forEach((values, number) => {
      const column = this.columns[number];
      if (column) for (let at = 0; at < count; at++) column[rows.from + at] = values[at] ?? NaN;
    });
    this.rows = Math.max(this.rows, end);
  }

  /** Takes a stored run: `values` holds column after column. */
  load(stored: Stored, values: Float64Array): void {
    const { manifest, progress, settings, applied, summary, stride, rows } = stored;
    Object.assign(this, { manifest, progress, settings, applied, summary, stride, rows });
    this.columns = Array.from({ length: manifest.columns }, (_, k) => values.subarray(k * rows, (k + 1) * rows));
  }

  private reserve(rows: number): void {
    const have = this.columns[0]?.length ?? 0;
    if (rows <= have) return;
    const size = Math.max(rows, 2 * have);
    this.columns = this.columns.map((old) => {
      const grown = new Float64Array(size);
      grown.set(old);
      return grown;
    });
  }
}
