// SPDX-License-Identifier: Apache-2.0
// The messages of the server and the contents of report.html; crates/dashboard has the same structs, docs/live.md
// describes them.

/** Columns of the recording by the page's name of what they hold. */
export type Series = Partial<Record<string, number>>;

export interface Sender {
  name: string;
  series: Series;
  counters: Series;
  link_bps: number;
  /** An equal share of its receiver's link among all senders of the run. */
  share_bps: number;
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
  /** Of the run, those that are not shown included. */
  all_senders: number;
  throughput: "payload" | "wire";
  queues: Queue[];
  totals: Total[];
  parameters: Parameter[];
  notes: string[];
  columns: number;
}

export interface Settings {
  senders: Record<string, string>[];
  run: Record<string, string>;
  /** K_min and K_max in force, of each queue of the manifest. */
  ecn: ([number, number] | null)[];
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
  /** Boards that do not answer, with the reason. */
  silent: string[];
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

/** A switch of summary.json with what was in force. */
export interface SwitchInForce {
  name: string;
  buffer_bytes: number;
  pfc: string;
  alpha: number | null;
  ports: {
    peer: string;
    kmin_bytes: number | null;
    kmax_bytes: number | null;
    xoff_bytes: number | null;
    xon_bytes: number | null;
    headroom_bytes: number | null;
  }[];
}

/** The link of the verdict, and the longest queue in front of it. */
export interface Bottleneck {
  from: string;
  to: string;
  peak_queue_bytes: number;
}

/** The parts of summary.json that the page looks at. */
export interface Summary {
  end?: string;
  settings?: Record<string, string>;
  boards?: { name: string; counters?: Record<string, number>; responder?: Record<string, number> }[];
  flows?: { name: string; cnps?: number; [key: string]: unknown }[];
  verdict?: { sentences: string[]; bottleneck?: Bottleneck | null };
  /** Of a readout: what was stored over the whole run. */
  readout?: { goodput_gbps: number };
  /** Payload of all flows over the whole run. */
  aggregate_gbps?: number;
  switches?: SwitchInForce[];
}

/** The JSON of report.html; the values are next to it. */
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
