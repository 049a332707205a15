// SPDX-License-Identifier: Apache-2.0
// What the server tells a page and what report.html holds; crates/dashboard has the same structs, docs/live.md the words.

/** Columns of the recording by the page's name of what they hold. */
export type Series = Partial<Record<string, number>>;

export interface Sender {
  name: string;
  series: Series;
  counters: Series;
  link_bps: number;
  limit_bps: number;
}

export interface Queue {
  name: string;
  series: Series;
}

export interface Total {
  name: string;
  unit: string;
  column: number;
}

export interface Parameter {
  key: string;
  label: string;
  help: string;
  scope: "sender" | "run";
  choices: string[];
}

export interface Manifest {
  title: string;
  kind: "boards" | "lab" | "board";
  interval_ps: number;
  senders: Sender[];
  queues: Queue[];
  totals: Total[];
  parameters: Parameter[];
  notes: string[];
  columns: number;
}

export interface Settings {
  senders: Record<string, string>[];
  run: Record<string, string>;
  ecn: [number, number] | null;
  threshold_bps: number | null;
}

export interface Applied {
  at_ps: number;
  senders: string[];
  set: Record<string, string>;
  registers?: [number, number][];
}

export interface Progress {
  phase: "running" | "ended";
  end: string;
  now_ps: number;
  done: number;
  total: number;
  unit: string;
  wall_s: number;
}

export interface Hello {
  run: string;
  generation: number;
  /** Rows that the page has and keeps. */
  rows: number;
  stride: number;
  manifest: Manifest;
}

export interface Rows {
  from: number;
  values: (number | null)[][];
}

/** The parts of summary.json that the page looks at. */
export interface Summary {
  end?: string;
  settings?: Record<string, string>;
  boards?: { name: string; counters?: Record<string, number>; responder?: Record<string, number> }[];
  flows?: { name: string; [key: string]: unknown }[];
}

/** The JSON of report.html; the values stand beside it. */
export interface Stored {
  manifest: Manifest;
  progress: Progress;
  settings: Settings;
  applied: Applied[];
  summary: Summary | null;
  stride: number;
  rows: number;
}

export interface Control {
  senders: string[];
  set: Record<string, string>;
}
