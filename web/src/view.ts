// SPDX-License-Identifier: Apache-2.0
// The part of the run that the charts show, and the position of the cursor.
// Promise: the whole run until the user zooms; never a view without width.

import type { Model } from "./model";

export class View {
  /** "whole": all there is; "follow": the newest part of it; "fixed": what was zoomed to. */
  mode: "whole" | "follow" | "fixed" = "whole";
  paused = false;
  /** Throughput as a mean of 0.1 ms or more (throughputFrame). */
  mean = true;
  /** Row under the cursor; none: the newest. */
  cursor: number | null = null;
  private from = 0;
  private to = 1;
  private span = 5;
  /** Rows shown while paused. */
  private held = 0;

  constructor(private readonly model: Model) {}

  /** Rows that are shown: those there are, or were when the picture was held. */
  get rows(): number {
    return this.paused ? Math.min(this.held, this.model.rows) : this.model.rows;
  }

  /** First and last moment shown, ms. */
  get range(): [number, number] {
    const end = Math.max(this.model.timeMs(this.rows - 1), this.model.stepMs * 10, 1e-6);
    if (this.mode === "whole") return [0, end];
    if (this.mode === "follow") return [Math.max(0, end - this.span), Math.max(end, this.span)];
    return [this.from, this.to];
  }

  /** The row whose values are read. */
  get row(): number {
    return this.cursor === null ? this.rows - 1 : Math.min(this.cursor, this.rows - 1);
  }

  pause(on = !this.paused): void {
    this.held = this.model.rows;
    this.paused = on;
  }

  show(from: number, to: number): void {
    const least = Math.max(this.model.stepMs * 4, 1e-6);
    const middle = (from + to) / 2;
    this.mode = "fixed";
    this.from = Math.max(0, to - from < least ? middle - least / 2 : from);
    this.to = Math.max(to, this.from + least);
  }

  whole(): void {
    this.mode = "whole";
  }

  follow(): void {
    const [from, to] = this.range;
    this.span = this.mode === "fixed" ? to - from : Math.max(this.model.stepMs * 50, Math.min(5, to / 3));
    this.mode = this.mode === "follow" ? "whole" : "follow";
  }

  /** Factor below 1: closer. Around the cursor if it is in view, else around the middle. */
  zoom(factor: number): void {
    const [from, to] = this.range;
    const at = this.cursor === null ? NaN : this.model.timeMs(this.cursor);
    const fixed = at >= from && at <= to ? at : (from + to) / 2;
    const end = this.model.timeMs(this.rows - 1);
    const low = fixed - (fixed - from) * factor,
      high = fixed + (to - fixed) * factor;
    if (low <= 0 && high >= end) this.whole();
    else this.show(low, Math.min(high, Math.max(end, low)));
  }

  /** Moves the cursor by rows, and the view with it. */
  step(by: number): void {
    this.cursor = Math.max(0, Math.min(this.rows - 1, this.row + by));
    const [from, to] = this.range,
      at = this.model.timeMs(this.cursor);
    if (at < from) this.show(at, at + to - from);
    if (at > to) this.show(at - (to - from), at);
  }
}
