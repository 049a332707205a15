// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { queueFrame, throughputFrame, type Scene } from "../src/frames";
import { Model } from "../src/model";
import { Selection } from "../src/selection";
import { View } from "../src/view";

/** Two of forty flows and two queues are shown: ports of 10 and of 25 Gb/s. */
function scene(queue: number): Scene {
  const model = new Model();
  const sender = (name: string, column: number) => ({
    name,
    series: { throughput: column },
    counters: {},
    link_bps: 10e9,
    share_bps: 0.25e9,
  });
  const manifest = {
    ...model.manifest,
    kind: "lab" as const,
    throughput: "payload" as const,
    interval_ps: 20_000_000,
    columns: 4,
    senders: [sender("a", 0), sender("b", 1)],
    all_senders: 40,
    queues: [
      { name: "root > server0", series: { depth: 2 } },
      { name: "root > leaf0", series: { depth: 3 } },
    ],
  };
  model.hello({ run: "r", generation: 0, rows: 0, stride: 1, manifest });
  const rows = Array.from({ length: 50 }, () => 100e3);
  model.add({ from: 0, values: [rows.map(() => 0.2e9), rows.map(() => 0.3e9), rows, rows] });
  model.settings.ecn = [
    [40e3, 160e3],
    [100e3, 400e3],
  ];
  const palette = { senders: ["red"], queue: "blue" } as unknown as Scene["palette"];
  return { model, view: new View(model), selection: new Selection(), palette, queue };
}

test("each queue has the thresholds in force at its own port", () => {
  const names = [0, 1].map((queue) => queueFrame(scene(queue), 200).levels.map((level) => level.name));
  assert.deepEqual(names, [
    ["Kmin 40.0 kB", "Kmax 160 kB"],
    ["Kmin 100 kB", "Kmax 400 kB"],
  ]);
});

test("an equal share is that of all flows, and throughput says what it is", () => {
  const frame = throughputFrame(scene(0), 200);
  assert.ok(frame.levels.some((level) => level.name === "equal shares 0.25 Gb/s" && level.at === 0.25));
  assert.match(frame.note, /^payload delivered/);
});

test("a mean is long enough for ten packets of an equal share", () => {
  const one = scene(0);
  assert.match(throughputFrame(one, 200).note, /mean of 1\.32 ms$/);
  for (const sender of one.model.manifest.senders) sender.share_bps = 5e9;
  assert.match(throughputFrame(one, 200).note, /mean of 0\.1 ms$/);
  one.view.mean = false;
  assert.match(throughputFrame(one, 200).note, /each sample$/);
});
