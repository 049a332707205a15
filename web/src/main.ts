// SPDX-License-Identifier: Apache-2.0
// The page: a live run, or the run stored in this file.
// Promise: for any amount of data, the page is drawn at most once per frame, and only when something has changed.

import "./style.css";
import { Charts } from "./charts";
import { Controls } from "./controls";
import { Details } from "./details";
import { byId, setText } from "./dom";
import { Feed } from "./feed";
import type { Scene } from "./frames";
import { listen, showKeys } from "./keys";
import { Model } from "./model";
import { palette, restoreTheme, SENDER_COLOURS, toggleTheme } from "./palette";
import { Selection } from "./selection";
import { SenderTable } from "./senders";
import { showStatus, type Source } from "./status";
import { storedRun } from "./stored";
import { View } from "./view";

restoreTheme();
const model = new Model();
const scene: Scene = { model, view: new View(model), selection: new Selection(), palette: palette(), queue: 0 };
const { view, selection } = scene;
let source: Source = "connecting";
let shape = true;
let shownRun = "";
let due = false;

/** How long each of the last redraws took, ms: for tests and the curious. */
const redraws: number[] = [];
const charts = new Charts(byId("charts"), {
  cursor: (ms) => {
    view.cursor = ms === null ? null : model.rowAt(ms);
    refresh();
  },
  zoom: (from, to) => change(() => view.show(from, to)),
  reset: () => change(() => view.whole()),
});
Object.assign(window, { penstock: { model, view, redraws, axes: () => charts.axes } });
const table = new SenderTable((sender) => change(() => selection.toggle(sender)));
/** The queue that the user has chosen. */
let chosenQueue: number | null = null;
const details = new Details((queue) => change(() => (scene.queue = chosenQueue = queue)));
const feed = new Feed(model, (another) => {
  source = feed.link;
  if (another) shape = true;
  refresh();
});
const controls = new Controls(
  model,
  () => selection.all.map((one) => one.sender),
  (control) => feed.steer(control),
);

function change(act: () => void): void {
  act();
  refresh();
}

function refresh(): void {
  if (due) return;
  due = true;
  requestAnimationFrame(draw);
}

function draw(): void {
  due = false;
  const began = performance.now();
  if (shape) rebuild();
  charts.draw(scene);
  table.update(scene);
  details.update(scene);
  showStatus(source, model);
  press("pause", view.paused);
  press("follow", view.mode === "follow");
  press("mean", view.mean);
  redraws.push(performance.now() - began);
  if (redraws.length > 1000) redraws.shift();
}

/** What there is to be shown has changed, or the values in force. */
function rebuild(): void {
  shape = false;
  const { manifest } = model;
  const run = `${manifest.title} ${manifest.senders.map((sender) => sender.name).join()} ${manifest.parameters.length}`;
  if (run !== shownRun) {
    shownRun = run;
    selection.first(firstSenders());
    chosenQueue = null;
    setText(byId("title"), manifest.title);
    document.title = `${manifest.title.split("/").pop()} – Penstock`;
    table.build(manifest.senders);
    controls.build();
  }
  scene.queue = chosenQueue ?? model.mainQueue;
  controls.update();
  details.build(scene);
}

/** All senders if their lines are distinguishable, else two; the rest is drawn in grey. */
function firstSenders(): number {
  const count = model.manifest.senders.length;
  return count <= SENDER_COLOURS / 2 ? count : 2;
}

function press(id: string, on: boolean): void {
  byId(id).setAttribute("aria-pressed", String(on));
}

function theme(): void {
  toggleTheme();
  scene.palette = palette();
}

const actions = {
  pause: () => view.pause(),
  follow: () => view.follow(),
  whole: () => view.whole(),
  mean: () => (view.mean = !view.mean),
  theme,
  none: () => selection.first(selection.all.length ? 0 : firstSenders()),
};
for (const [id, act] of Object.entries(actions)) byId(id).addEventListener("click", () => change(act));
byId("help").addEventListener("click", showKeys);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change(() => (scene.palette = palette())));

listen([
  { keys: [" "], shown: "space", does: "hold the picture, go on", act: () => change(actions.pause) },
  {
    keys: ["ArrowLeft", "ArrowRight"],
    shown: "← →",
    does: "cursor by one sample; with shift by twenty",
    act: (event) => change(() => view.step((event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 20 : 1))),
  },
  {
    keys: ["Home"],
    shown: "Home",
    does: "cursor to the first sample",
    act: () => change(() => view.step(-model.rows)),
  },
  {
    keys: ["End", "Escape"],
    shown: "End, Esc",
    does: "cursor off: read the latest values",
    act: () => change(() => (view.cursor = null)),
  },
  { keys: ["+", "="], shown: "+", does: "closer", act: () => change(() => view.zoom(0.5)) },
  { keys: ["-"], shown: "−", does: "farther", act: () => change(() => view.zoom(2)) },
  { keys: ["0"], shown: "0", does: "the whole run", act: () => change(actions.whole) },
  { keys: ["f"], shown: "f", does: "follow the newest part", act: () => change(actions.follow) },
  { keys: ["m"], shown: "m", does: "throughput as a mean, or sample by sample", act: () => change(actions.mean) },
  {
    keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9"],
    shown: "1 … 9",
    does: "select a sender, or not",
    act: (event) =>
      change(() => Number(event.key) <= model.manifest.senders.length && selection.toggle(Number(event.key) - 1)),
  },
  { keys: ["n"], shown: "n", does: "select none, or the first ones", act: () => change(actions.none) },
  { keys: ["c"], shown: "c", does: "to the controls", act: () => controls.focus() },
  { keys: ["t"], shown: "t", does: "light or dark", act: () => change(actions.theme) },
  { keys: ["?"], shown: "?", does: "this list", act: showKeys },
]);

const stored = await storedRun();
if (stored) {
  model.load(stored.stored, stored.values);
  source = "stored";
} else feed.connect();
refresh();
