// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { buckets, pointsOf, smooth, thin, times } from "../src/thin";

const wave = Float64Array.from({ length: 1000 }, (_, n) => Math.sin(n / 7) * 1e9);

test("as long as there is room every row is a point", () => {
  const shape = buckets(10, 60, 100);
  assert.equal(shape.size, 1);
  assert.deepEqual(
    [...thin(wave, shape, "extremes", 1e-9)],
    [...wave.subarray(10, 60)].map((value) => value * 1e-9),
  );
  assert.equal(times(shape, "extremes", 0.02)[5], 15 * 0.02);
});

test("extremes of every bucket survive, in their order", () => {
  const column = Float64Array.from([0, 5, 1, 1, 9, 2, 2, 3]);
  assert.deepEqual([...thin(column, { from: 0, to: 8, size: 4 }, "extremes", 1)], [0, 5, 9, 2]);
  assert.equal(Math.max(...thin(wave, buckets(0, 1000, 20), "extremes", 1)), Math.max(...wave));
});

test("a mean is the mean of the values there are", () => {
  assert.deepEqual(
    [...thin(Float64Array.from([1, NaN, 3, 5, NaN, NaN, NaN, NaN]), { from: 0, to: 8, size: 4 }, "mean", 2)],
    [6, NaN],
  );
});

test("there are never many more points than room", () => {
  for (const [from, to, room] of [
    [0, 1, 50],
    [3, 999, 10],
    [0, 1e6, 800],
  ] as const) {
    const shape = buckets(from, to, room);
    assert.ok(pointsOf(shape, "mean") <= room + 2, `${pointsOf(shape, "mean")} points for ${room}`);
    assert.ok(shape.from <= from && shape.from % shape.size === 0);
  }
});

test("edges of buckets stay where they are while a run grows", () => {
  const early = times(buckets(0, 900, 100), "mean", 1),
    later = times(buckets(0, 910, 100), "mean", 1);
  assert.deepEqual([...early.subarray(0, 50)], [...later.subarray(0, 50)]);
});

test("a smoothed row is the mean of its window, at the edges of what there is of it", () => {
  assert.deepEqual([...smooth(Float64Array.from([3, 6, 9, NaN, 30]), 0, 5, 3)], [4.5, 6, 7.5, 19.5, 30]);
});
