// SPDX-License-Identifier: Apache-2.0
// The parts of charts other than series: bands and grey lines underneath, levels, CNP lanes and flags on top.

import type uPlot from "uplot";
import type { Frame } from "./frames";
import type { Palette } from "./palette";

function clipped(plot: uPlot, draw: (context: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx);
  ctx.restore();
}

/** Before the axes and the series. */
export function drawUnder(plot: uPlot, frame: Frame | null): void {
  if (!frame) return;
  const x = (ms: number) => plot.valToPos(ms, "x", true),
    y = (value: number) => plot.valToPos(value, "y", true);
  clipped(plot, (ctx) => {
    for (const { fill, spans } of frame.bands) {
      ctx.fillStyle = fill;
      for (const [from, to] of spans)
        ctx.fillRect(x(from), plot.bbox.top, Math.max(1, x(to) - x(from)), plot.bbox.height);
    }
    if (!frame.context.length) return;
    // One path for all of them: hundreds of strokes would cost more than all else.
    const left = Float64Array.from(frame.times, x);
    const zero = y(0),
      scale = y(1) - zero;
    ctx.beginPath();
    for (const points of frame.context) {
      let drawing = false;
      for (let n = 0; n < points.length; n++) {
        const value = points[n] ?? NaN;
        if (value !== value) drawing = false;
        else if (drawing) ctx.lineTo(left[n] ?? 0, zero + value * scale);
        else {
          ctx.moveTo(left[n] ?? 0, zero + value * scale);
          drawing = true;
        }
      }
    }
    ctx.strokeStyle = frame.contextStroke;
    ctx.lineWidth = 1;
    ctx.stroke();
  });
}

/** After the series. */
export function drawFront(plot: uPlot, frame: Frame | null, colours: Palette): void {
  if (!frame) return;
  const pixel = devicePixelRatio,
    { bbox } = plot;
  const x = (ms: number) => Math.round(plot.valToPos(ms, "x", true)),
    y = (value: number) => plot.valToPos(value, "y", true);
  clipped(plot, (ctx) => {
    ctx.font = `${11 * pixel}px system-ui, sans-serif`;
    let above = Infinity;
    for (const { at, name, dash } of frame.levels) {
      const height = Math.round(y(at)) + 0.5;
      ctx.strokeStyle = colours.limit;
      ctx.lineWidth = pixel;
      ctx.setLineDash(dash.map((length) => length * pixel));
      ctx.beginPath();
      ctx.moveTo(bbox.left, height);
      ctx.lineTo(bbox.left + bbox.width, height);
      ctx.stroke();
      ctx.setLineDash([]);
      // Two names in one place could not be read.
      if (Math.abs(above - height) < 13 * pixel) continue;
      above = height;
      label(ctx, name, bbox.left + bbox.width - 6 * pixel, height - 5 * pixel, colours.muted, colours.card);
    }
    frame.lanes.forEach(({ stroke, at }, lane) => {
      const height = 5 * pixel,
        top = bbox.top + lane * (height + pixel);
      ctx.fillStyle = stroke;
      let last = -1;
      for (const ms of at) {
        const left = x(ms);
        if (left !== last) ctx.fillRect(left, top, Math.max(1, pixel), height);
        last = left;
      }
    });
    ctx.fillStyle = colours.text;
    for (const ms of frame.flags) {
      const left = x(ms);
      ctx.globalAlpha = 0.45;
      ctx.fillRect(left, bbox.top, pixel, bbox.height);
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(left, bbox.top);
      ctx.lineTo(left + 7 * pixel, bbox.top + 3.5 * pixel);
      ctx.lineTo(left, bbox.top + 7 * pixel);
      ctx.fill();
    }
  });
}

function label(
  ctx: CanvasRenderingContext2D,
  text: string,
  right: number,
  bottom: number,
  colour: string,
  ground: string,
): void {
  ctx.textAlign = "right";
  // A halo keeps the words apart from the lines that pass behind them.
  ctx.strokeStyle = ground;
  ctx.lineWidth = 4 * devicePixelRatio;
  ctx.lineJoin = "round";
  ctx.strokeText(text, right, bottom);
  ctx.fillStyle = colour;
  ctx.fillText(text, right, bottom);
}
