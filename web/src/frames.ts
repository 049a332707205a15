// SPDX-License-Identifier: Apache-2.0
// The contents of each chart for one redraw: series as points, lines, marks and bands. Reads the run, draws nothing.

import * as format from "./format";
import type { Model } from "./model";
import type { Palette } from "./palette";
import type { Selection } from "./selection";
import { buckets, smooth, thin, times, type Buckets, type Thinning } from "./thin";
import type { View } from "./view";

/** Everything that decides a picture. */
export interface Scene {
  model: Model;
  view: View;
  selection: Selection;
  palette: Palette;
  /** Which queue. */
  queue: number;
}

export interface Line {
  points: Float64Array;
  stroke: string;
  width: number;
  dash?: number[];
  fill?: string;
  step?: boolean;
}

export interface Frame {
  times: Float64Array;
  series: Line[];
  low: number;
  high: number;
  /** Above this there are marks and no labels. */
  top: number;
  /** Lines drawn grey and thin underneath, on the times of the frame. */
  context: Float64Array[];
  contextStroke: string;
  /** Horizontal lines with their names. */
  levels: { at: number; name: string; dash: number[] }[];
  /** Moments marked in lanes at the top, one lane a sender. */
  lanes: { stroke: string; at: number[] }[];
  /** Stretches of time, ms. */
  bands: { fill: string; spans: [number, number][] }[];
  /** Moments at which somebody changed something. */
  flags: number[];
  note: string;
  /** The run has nothing of this kind. */
  absent: boolean;
  /** Equal shapes have the same series in the same colours. */
  shape: string;
}

interface Window {
  shape: Buckets;
  first: number;
  end: number;
}

/** The rows in view, one more at each end, in buckets of a pixel or two. */
function windowOf(scene: Scene, room: number): Window {
  const { model, view } = scene;
  const [from, to] = view.range,
    step = model.stepMs || 1;
  const first = Math.max(0, Math.floor(from / step) - 1);
  const end = Math.max(first, Math.min(view.rows, Math.ceil(to / step) + 2));
  return { shape: buckets(first, end, room), first, end };
}

function frameOf(scene: Scene, shape: Buckets, thinning: Thinning): Frame {
  const { model, palette } = scene;
  return {
    times: times(shape, thinning, model.stepMs),
    series: [],
    low: 0,
    high: 1,
    top: Infinity,
    context: [],
    contextStroke: palette.context,
    levels: [],
    lanes: [],
    bands: [],
    flags: model.applied.map((one) => one.at_ps / 1e9),
    note: "",
    absent: false,
    shape: "",
  };
}

/** A multiple of 1, 2 or 5 times a power of ten that has room for a value. */
function ceiling(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) if (value <= step * power) return step * power;
  return 10 * power;
}

function greatest(lines: Float64Array[]): number {
  let high = 0;
  for (const points of lines) for (const value of points) if (value > high) high = value;
  return high;
}

/** The same value for all senders, or none. */
function common(values: number[]): number | null {
  const [first] = values;
  return first !== undefined && first > 0 && values.every((value) => value === first) ? first : null;
}

// A sender with a small share sends a packet now and then: a mean of fewer packets would show those, and no rate.
const PACKETS_OF_A_MEAN = 10;
const PACKET_BITS = 8 * 4096;

export function throughputFrame(scene: Scene, room: number): Frame {
  const { model, view, selection, palette } = scene;
  const { shape, first, end } = windowOf(scene, room);
  const frame = frameOf(scene, shape, "mean");
  const { senders } = model.manifest;
  const equal = common(senders.map((sender) => sender.share_bps));
  const meanMs = Math.max(0.1, equal === null ? 0 : (PACKETS_OF_A_MEAN * PACKET_BITS * 1e3) / equal);
  const window = view.mean ? Math.max(1, Math.round(meanMs / (model.stepMs || 1))) : 1;
  const points = (number: number | undefined) => {
    const column = model.column(number);
    return thin(window > 1 ? smooth(column, shape.from, end, window) : column, shape, "mean", 1e-9);
  };
  senders.forEach((sender, n) => {
    if (selection.colour(n) === null) frame.context.push(points(sender.series.throughput));
  });
  for (const { sender, colour } of selection.all) {
    frame.series.push({
      points: points(senders[sender]?.series.throughput),
      stroke: palette.senders[colour] ?? "",
      width: 1.6,
    });
  }
  const link = common(senders.map((sender) => sender.link_bps));
  const threshold = model.settings.threshold_bps;
  if (link !== null) frame.levels.push({ at: link / 1e9, name: `link ${link / 1e9} Gb/s`, dash: [] });
  if (threshold !== null)
    frame.levels.push({ at: threshold / 1e9, name: `threshold ${threshold / 1e9} Gb/s`, dash: [6, 4] });
  else if (equal !== null && model.manifest.all_senders > 1) {
    const share = equal / 1e9;
    frame.levels.push({ at: share, name: `equal shares ${+share.toFixed(3)} Gb/s`, dash: [6, 4] });
  }
  const high = greatest([...frame.context, ...frame.series.map((line) => line.points)]);
  // A link rate far above everything would press the lines flat: then only the note has it.
  const top = (link ?? 0) / 1e9,
    inSight = high === 0 || top < 2.5 * high;
  const levels = Math.max(...frame.levels.map((level) => (level.at === top ? 0 : level.at)), 0);
  frame.high = Math.max(inSight ? top * 1.08 : 0, ceiling(Math.max(high, levels) * 1.05));
  const mean =
    window > 1 && shape.size < window
      ? `mean of ${+(window * model.stepMs).toFixed(3)} ms`
      : shape.size > 1
        ? `mean of ${+(shape.size * model.stepMs).toFixed(3)} ms`
        : "each sample";
  const what = model.manifest.throughput === "payload" ? "payload delivered" : "all that is on the wire";
  frame.note = `${what}${inSight ? "" : ` (link ${top} Gb/s)`}, ${mean}${first >= end ? "; no data yet" : ""}`;
  frame.shape = key(frame);
  return frame;
}

export function rateFrame(scene: Scene, room: number): Frame {
  const { model, selection, palette } = scene;
  const { shape } = windowOf(scene, room / 2);
  const frame = frameOf(scene, shape, "extremes");
  const of = (number: number | undefined) => thin(model.column(number), shape, "extremes", 1e-9);
  for (const { sender, colour } of selection.all) {
    const series = model.manifest.senders[sender]?.series,
      stroke = palette.senders[colour] ?? "";
    frame.series.push({ points: of(series?.rate_target), stroke, width: 1, dash: [4, 4], step: true });
    frame.series.push({ points: of(series?.rate_current), stroke, width: 1.6, step: true });
  }
  const link = common(model.manifest.senders.map((sender) => sender.link_bps));
  if (link !== null) frame.levels.push({ at: link / 1e9, name: "", dash: [] });
  const high = greatest(frame.series.map((line) => line.points));
  frame.high = Math.max(ceiling(high), high * 1.08);
  frame.note = frame.series.length ? "Gb/s" : "select a sender to see its rates";
  frame.shape = key(frame);
  return frame;
}

const LANE = 0.07;

export function alphaFrame(scene: Scene, room: number): Frame {
  const { model, selection, palette } = scene;
  const { shape, first, end } = windowOf(scene, room / 2);
  const frame = frameOf(scene, shape, "extremes");
  let seen = 0;
  for (const { sender, colour } of selection.all) {
    const series = model.manifest.senders[sender]?.series,
      stroke = palette.senders[colour] ?? "";
    frame.series.push({
      points: thin(model.column(series?.alpha), shape, "extremes", 1),
      stroke,
      width: 1.4,
      step: true,
    });
    const at = rises(model, series?.cnp_handled, first, end);
    frame.lanes.push({ stroke, at });
    seen += at.length;
  }
  frame.top = 1;
  frame.high = 1.04 + LANE * frame.lanes.length;
  frame.note = frame.series.length
    ? `0 to 1; CNPs in ${format.count(seen)} of these samples`
    : "select a sender to see its alpha";
  frame.shape = key(frame);
  return frame;
}

/** Moments, in ms, at which a counter has grown since the row before. */
function rises(model: Model, number: number | undefined, first: number, end: number): number[] {
  const column = model.column(number),
    moments: number[] = [];
  let before = model.latest(number, first - 1);
  for (let row = first; row < end; row++) {
    const value = column[row] ?? NaN;
    if (value > before || (Number.isNaN(before) && value > 0)) moments.push(model.timeMs(row));
    if (!Number.isNaN(value)) before = value;
  }
  return moments;
}

export function queueFrame(scene: Scene, room: number): Frame {
  const { model, palette } = scene;
  const { shape, first, end } = windowOf(scene, room / 2);
  const frame = frameOf(scene, shape, "extremes");
  const queue = model.manifest.queues[scene.queue];
  const points = thin(model.column(queue?.series.depth), shape, "extremes", 1e-3);
  frame.series.push({ points, stroke: palette.queue, width: 1.3, fill: palette.queueFill });
  const high = greatest([points]);
  const ecn = model.settings.ecn[scene.queue];
  if (ecn && queue) {
    frame.levels.push({ at: ecn[0] / 1e3, name: `Kmin ${format.bytes(ecn[0])}`, dash: [6, 4] });
    // A threshold far above everything would press the queue flat.
    if (ecn[1] / 1e3 < 6 * Math.max(high, ecn[0] / 1e3))
      frame.levels.push({ at: ecn[1] / 1e3, name: `Kmax ${format.bytes(ecn[1])}`, dash: [] });
  }
  frame.high = Math.max(ceiling(high * 1.05), ...frame.levels.map((level) => level.at * 1.12));
  const pausing = spans(model, queue?.series.pausing, first, end),
    held = spans(model, queue?.series.paused, first, end);
  frame.bands.push({ fill: palette.pause, spans: pausing }, { fill: palette.hold, spans: held });
  const pauses = pausing.length + held.length;
  frame.note = queue
    ? `kB waiting in ${queue.name}; ${pauses ? `pauses: ${format.count(pauses)} (bands)` : "no pauses"}`
    : "this run has no switch";
  frame.shape = key(frame);
  return frame;
}

/** How many events were complete and stored, by time. */
export function eventsFrame(scene: Scene, room: number): Frame {
  const { model, palette } = scene;
  const { shape } = windowOf(scene, room / 2);
  const frame = frameOf(scene, shape, "extremes");
  const built = model.manifest.totals.find((total) => total.name === "events built");
  frame.absent = built === undefined;
  const points = thin(model.column(built?.column), shape, "extremes", 1);
  frame.series.push({ points, stroke: palette.queue, width: 1.6, step: true });
  const { done, total } = model.progress;
  if (total > 0) frame.levels.push({ at: total, name: `all ${format.count(total)}`, dash: [6, 4] });
  frame.high = Math.max(ceiling(greatest([points])), total * 1.12);
  frame.note = `complete and stored: ${format.count(done)} of ${format.count(total)}`;
  frame.shape = key(frame);
  return frame;
}

/** Stretches of time, in ms, in which a flag was up. */
function spans(model: Model, number: number | undefined, first: number, end: number): [number, number][] {
  const column = model.column(number),
    found: [number, number][] = [];
  let since = -1;
  for (let row = first; row <= end; row++) {
    const up = row < end && (column[row] ?? 0) > 0;
    if (up && since < 0) since = row;
    if (!up && since >= 0) {
      found.push([model.timeMs(since - 0.5), model.timeMs(row - 0.5)]);
      since = -1;
    }
  }
  return found;
}

function key(frame: Frame): string {
  return frame.series.map((line) => `${line.stroke}${line.dash ? "-" : ""}`).join();
}
