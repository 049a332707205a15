// SPDX-License-Identifier: Apache-2.0
// Reduces a column to as many points as a chart has room for.
// Promise: "extremes" keeps the smallest and the largest value of every bucket, "mean" the mean of the existing values.

export type Thinning = "extremes" | "mean";

/** Rows `from` to `to` (not included) in buckets of equal size. */
export interface Buckets {
  from: number;
  to: number;
  /** Rows of a bucket; 1: each row is a point. */
  size: number;
}

/** Buckets for about `room` points. Their edges do not move when rows are added or the view scrolls. */
export function buckets(from: number, to: number, room: number): Buckets {
  let size = 1;
  while ((to - from) / size > Math.max(1, room)) size *= 2;
  return { from: Math.floor(from / size) * size, to, size };
}

export function pointsOf(shape: Buckets, thinning: Thinning): number {
  const count = Math.max(0, Math.ceil((shape.to - shape.from) / shape.size));
  return thinning === "extremes" && shape.size > 1 ? 2 * count : count;
}

/** Times of the points, in the unit of `step`, the time of one row. */
export function times(shape: Buckets, thinning: Thinning, step: number): Float64Array {
  const points = new Float64Array(pointsOf(shape, thinning));
  const pair = thinning === "extremes" && shape.size > 1;
  for (let n = 0; n < points.length; n++) {
    const bucket = pair ? n >> 1 : n;
    const within = shape.size === 1 ? 0 : pair ? ((n & 1) + 0.5) * 0.5 * shape.size - 0.5 : (shape.size - 1) / 2;
    points[n] = (shape.from + bucket * shape.size + within) * step;
  }
  return points;
}

/** Values of the points, times `scale`; NaN where a bucket has none. */
export function thin(column: Float64Array, shape: Buckets, thinning: Thinning, scale: number): Float64Array {
  const points = new Float64Array(pointsOf(shape, thinning));
  const { from, to, size } = shape;
  if (size === 1) {
    for (let n = 0; n < points.length; n++) points[n] = (column[from + n] ?? NaN) * scale;
    return points;
  }
  const extremes = thinning === "extremes";
  for (let bucket = 0, row = from; row < to; bucket++, row += size) {
    const end = Math.min(row + size, to);
    let low = NaN,
      high = NaN,
      lowAt = 0,
      highAt = 0,
      sum = 0,
      count = 0;
    for (let at = row; at < end; at++) {
      const value = column[at] ?? NaN;
      if (value !== value) continue;
      if (!(value >= low)) {
        low = value;
        lowAt = at;
      }
      if (!(value <= high)) {
        high = value;
        highAt = at;
      }
      sum += value;
      count++;
    }
    if (extremes) {
      points[2 * bucket] = (lowAt <= highAt ? low : high) * scale;
      points[2 * bucket + 1] = (lowAt <= highAt ? high : low) * scale;
    } else {
      points[bucket] = count ? (sum / count) * scale : NaN;
    }
  }
  return points;
}

/** Mean over a window of rows around each, of rows `from` to `to`; the rest of the result is NaN. */
export function smooth(column: Float64Array, from: number, to: number, window: number): Float64Array {
  const result = new Float64Array(to).fill(NaN);
  const before = Math.floor((window - 1) / 2),
    after = window - 1 - before;
  let sum = 0,
    count = 0,
    low = Math.max(0, from - before),
    high = low;
  const take = (at: number, sign: number) => {
    const value = column[at] ?? NaN;
    if (value === value) {
      sum += sign * value;
      count += sign;
    }
  };
  for (let row = from; row < to; row++) {
    while (high <= Math.min(row + after, to - 1)) take(high++, 1);
    while (low < row - before) take(low++, -1);
    result[row] = count ? sum / count : NaN;
  }
  return result;
}
