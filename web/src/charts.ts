// SPDX-License-Identifier: Apache-2.0
// The charts, below each other with one axis of simulated time: throughput, rates, alpha with CNPs, events, the
// queue.
// Promise: one redraw per frame, as many points as pixels; cursor and zoom are shared by all.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { indexed, make } from "./dom";
import { alphaFrame, eventsFrame, queueFrame, rateFrame, throughputFrame, type Frame, type Scene } from "./frames";
import { drawFront, drawUnder } from "./marks";
import type { Palette } from "./palette";

interface Chart {
  id: string;
  title: string;
  /** The quantity of the vertical axis, with its unit. */
  quantity: string;
  /** What is drawn, for those who cannot see it. */
  label: string;
  height: number;
  frame: (scene: Scene, room: number) => Frame;
}

const CHARTS: Chart[] = [
  {
    id: "throughput",
    title: "Throughput",
    quantity: "rate [Gb/s]",
    label: "Throughput of each sender",
    height: 186,
    frame: throughputFrame,
  },
  {
    id: "rates",
    title: "Rate limiter: R_C, R_T dashed",
    quantity: "rate [Gb/s]",
    label: "Current and target rate of the selected senders",
    height: 150,
    frame: rateFrame,
  },
  {
    id: "alpha",
    title: "Congestion estimate alpha, CNPs above",
    quantity: "alpha",
    label: "Alpha of the selected senders with a mark for each CNP",
    height: 122,
    frame: alphaFrame,
  },
  {
    id: "events",
    title: "Events built",
    quantity: "events",
    label: "Number of events that are complete and stored",
    height: 122,
    frame: eventsFrame,
  },
  {
    id: "queue",
    title: "Switch queue",
    quantity: "waiting [kB]",
    label: "Bytes in the queue with marking thresholds and pauses",
    height: 140,
    frame: queueFrame,
  },
];

export interface Events {
  cursor(timeMs: number | null): void;
  zoom(from: number, to: number): void;
  reset(): void;
}

export class Charts {
  private readonly plots: { chart: Chart; plot: uPlot; card: HTMLElement; shape: string; frame: Frame | null }[] = [];
  private colours: Palette | null = null;
  private moving = false;

  constructor(
    private readonly parent: HTMLElement,
    private readonly events: Events,
  ) {
    new ResizeObserver(() => this.resize()).observe(parent);
  }

  /** The quantities of the vertical axes, as they are drawn. */
  get axes(): string[] {
    const shown = this.plots.filter(({ card }) => !card.hidden);
    return shown.map(({ plot }) => String(plot.axes[1]?.label ?? ""));
  }

  /** Draws a moment of the run. */
  draw(scene: Scene): void {
    if (this.colours !== scene.palette) {
      this.colours = scene.palette;
      this.build(scene);
    }
    const [min, max] = scene.view.range;
    for (const entry of this.plots) {
      const { plot, chart } = entry;
      const frame = chart.frame(scene, Math.max(50, plot.bbox.width / devicePixelRatio));
      entry.card.hidden = frame.absent;
      if (frame.absent) continue;
      if (frame.shape !== entry.shape) this.reshape(entry, frame);
      entry.frame = frame;
      plot.batch(() => {
        plot.setData([frame.times, ...frame.series.map((series) => series.points)] as uPlot.AlignedData, false);
        plot.setScale("x", { min, max });
        plot.setScale("y", { min: frame.low, max: frame.high });
      });
      const note = entry.card.querySelector(".note");
      if (note && note.textContent !== frame.note) note.textContent = frame.note;
    }
    this.place(scene);
  }

  /** Puts the cursor of every chart where the view has it. */
  private place(scene: Scene): void {
    const { cursor } = scene.view;
    this.moving = true;
    for (const { plot } of this.plots) {
      const left = cursor === null ? -10 : plot.valToPos(scene.model.timeMs(cursor), "x");
      if (Math.abs((plot.cursor.left ?? -10) - left) > 0.4)
        plot.setCursor({ left, top: cursor === null ? -10 : 1 }, false);
    }
    this.moving = false;
  }

  private build(scene: Scene): void {
    for (const { plot, card } of this.plots) {
      plot.destroy();
      card.remove();
    }
    this.plots.length = 0;
    for (const chart of CHARTS) {
      const card = document.createElement("figure");
      card.className = "card chart";
      card.id = `chart-${chart.id}`;
      const caption = document.createElement("figcaption");
      caption.append(make("h2", {}, ...indexed(chart.title)));
      caption.append(Object.assign(document.createElement("span"), { className: "note" }));
      const canvas = document.createElement("div");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${chart.label}, over simulated time; the table has the values at the cursor`);
      card.append(caption, canvas);
      this.parent.append(card);
      const last = chart === CHARTS[CHARTS.length - 1];
      const entry = { chart, card, shape: "", frame: null as Frame | null, plot: null as unknown as uPlot };
      entry.plot = new uPlot(
        this.options(chart, last, scene.palette, () => entry.frame),
        [[]],
        canvas,
      );
      this.plots.push(entry);
    }
  }

  private options(chart: Chart, last: boolean, colours: Palette, frame: () => Frame | null): uPlot.Options {
    const axis = {
      stroke: colours.muted,
      grid: { stroke: colours.grid, width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
    };
    return {
      width: this.width(),
      height: chart.height + (last ? 40 : 0),
      legend: { show: false },
      padding: [10, 14, last ? null : 6, 0],
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      series: [{}],
      axes: [
        {
          ...axis,
          show: true,
          size: last ? 30 : 4,
          ...(last && { label: "simulated time [ms]", labelSize: 16, labelFont: axis.font }),
          values: (_, splits) => splits.map((ms) => (last ? String(+ms.toFixed(6)) : "")),
        },
        {
          ...axis,
          size: 46,
          label: chart.quantity,
          labelSize: 16,
          labelFont: axis.font,
          space: 34,
          values: (_, splits) =>
            splits.map((y) => (y > 1e-9 + (frame()?.top ?? Infinity) ? "" : String(+y.toFixed(3)))),
        },
      ],
      cursor: {
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
        bind: { dblclick: () => () => (this.events.reset(), null) },
      },
      hooks: {
        drawClear: [(plot) => drawUnder(plot, frame())],
        draw: [(plot) => drawFront(plot, frame(), colours)],
        setSelect: [(plot) => this.selected(plot)],
        setCursor: [(plot) => this.moved(plot)],
      },
    };
  }

  private selected(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.events.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
  }

  private moved(plot: uPlot): void {
    if (this.moving) return;
    const left = plot.cursor.left ?? -1;
    this.events.cursor(left < 0 ? null : plot.posToVal(left, "x"));
  }

  /** Other series than before: uPlot takes them one by one. */
  private reshape(entry: { plot: uPlot; shape: string }, frame: Frame): void {
    const { plot } = entry;
    plot.batch(() => {
      while (plot.series.length > 1) plot.delSeries(plot.series.length - 1);
      frame.series.forEach((series, n) => {
        const { stroke, width, dash, fill, step } = series;
        const paths = step ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
        plot.addSeries(
          {
            stroke,
            width,
            points: { show: false },
            ...(dash && { dash }),
            ...(fill && { fill }),
            ...(paths && { paths }),
          },
          n + 1,
        );
      });
    });
    entry.shape = frame.shape;
  }

  private width(): number {
    return Math.max(280, this.parent.clientWidth - 26);
  }

  private resize(): void {
    const width = this.width();
    for (const { plot } of this.plots) if (plot.width !== width) plot.setSize({ width, height: plot.height });
  }
}
