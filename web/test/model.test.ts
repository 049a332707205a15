// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import * as format from "../src/format";
import { Model } from "../src/model";
import { Selection } from "../src/selection";
import { unpack } from "../src/stored";
import { View } from "../src/view";

function model(rows: number): Model {
  const run = new Model();
  run.hello({
    run: "r",
    generation: 0,
    rows: 0,
    stride: 1,
    manifest: { ...run.manifest, interval_ps: 20_000_000, columns: 1 },
  });
  run.add({ from: 0, values: [Array.from({ length: rows }, (_, n) => n)] });
  return run;
}

test("the queue that is shown first is that of the bottleneck, once it is known", () => {
  const run = model(1);
  const queue = (name: string) => ({ name, series: {} });
  run.manifest = { ...run.manifest, queues: [queue("leaf0 > root"), queue("root > server0, class 3")] };
  assert.equal(run.mainQueue, 0);
  const verdict = { sentences: [], bottleneck: { from: "root", to: "server0", peak_queue_bytes: 7 } };
  run.summary = { verdict };
  assert.equal(run.mainQueue, 1);
  run.summary = { verdict: { ...verdict, bottleneck: { ...verdict.bottleneck, from: "leaf1" } } };
  assert.equal(run.mainQueue, 0, "a queue that is not shown");
});

test("rows that are sent twice or late come to their place", () => {
  const run = model(3000);
  run.add({ from: 2998, values: [[2998, null, 3000]] });
  assert.equal(run.rows, 3001);
  assert.deepEqual(
    [2997, 2999, 3000].map((row) => run.value(0, row)),
    [2997, NaN, 3000],
  );
  assert.equal(run.latest(0, 2999), 2998);
  assert.throws(() => run.add({ from: 5000, values: [[1]] }), /3001 to 5000/);
});

test("a page that comes back keeps the rows it has", () => {
  const run = model(10);
  run.hello({ run: "r", generation: 0, rows: 10, stride: 1, manifest: run.manifest });
  assert.equal(run.value(0, 9), 9);
  run.hello({ run: "r", generation: 1, rows: 0, stride: 2, manifest: run.manifest });
  assert.equal(run.rows, 0);
  assert.equal(run.stepMs, 0.04);
});

test("stored values unpack to the last bit", async () => {
  const values = Float64Array.from([0, 1 / 3, -1e300, Number.MIN_VALUE, NaN]);
  const bytes = new Uint8Array(values.buffer),
    planes = new Uint8Array(bytes.length);
  bytes.forEach((byte, n) => (planes[(n % 8) * values.length + (n >> 3)] = byte));
  assert.deepEqual([...(await unpack(gzipSync(planes).toString("base64")))], [...values]);
});

test("a view zooms around the cursor, follows, and comes back to the whole run", () => {
  const run = model(1001),
    view = new View(run);
  assert.deepEqual(view.range, [0, 20]);
  view.cursor = 250;
  view.zoom(0.5);
  assert.deepEqual(view.range, [2.5, 12.5]);
  view.follow();
  assert.deepEqual(view.range, [10, 20]);
  view.zoom(100);
  assert.equal(view.mode, "whole");
});

test("a held picture does not move while the run goes on", () => {
  const run = model(100),
    view = new View(run);
  view.pause();
  run.add({ from: 100, values: [[1, 2, 3]] });
  assert.equal(view.rows, 100);
  view.pause();
  assert.equal(view.rows, 103);
});

test("the cursor stays on the run and the view follows it", () => {
  const run = model(1000),
    view = new View(run);
  view.show(1, 2);
  view.step(-1);
  assert.equal(view.row, 998);
  assert.ok(view.range[1] >= run.timeMs(998));
  view.step(-5000);
  assert.deepEqual([view.row, view.range[0]], [0, 0]);
});

test("a sender keeps its colour, and there are no more than have distinguishable colours", () => {
  const selection = new Selection();
  selection.first(8);
  selection.toggle(8);
  assert.equal(selection.colour(8), null);
  selection.toggle(3);
  selection.toggle(8);
  assert.deepEqual([selection.colour(8), selection.colour(7)], [3, 7]);
});

test("numbers are written with their units", () => {
  assert.equal(format.gbps(3.342e9), "3.342");
  assert.equal(format.bytes(164_000), "164 kB");
  assert.equal(format.count(10167800), "10\u202f167\u202f800");
  assert.equal(format.time(12.34, 0.02), "12.34 ms");
  assert.equal(format.slowdown(50, 25e9), "1 : 2\u202f000");
  assert.equal(format.gbps(NaN), format.NONE);
});
