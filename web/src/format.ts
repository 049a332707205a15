// SPDX-License-Identifier: Apache-2.0
// Formats numbers for the page. Units that never change are in headings.

export const NONE = "–";

/** bit/s as Gb/s with three decimals. */
export function gbps(bitsPerSecond: number): string {
  return Number.isNaN(bitsPerSecond) ? NONE : (bitsPerSecond / 1e9).toFixed(3);
}

export function fixed(value: number, decimals: number): string {
  return Number.isNaN(value) ? NONE : value.toFixed(decimals);
}

/** A fraction in percent. */
export function percent(fraction: number): string {
  return Number.isNaN(fraction) ? NONE : `${(fraction * 100).toFixed(fraction > 0 && fraction < 0.1 ? 1 : 0)}`;
}

/** A count, its digits in threes. */
export function count(value: number): string {
  if (Number.isNaN(value)) return NONE;
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function bytes(value: number): string {
  if (Number.isNaN(value)) return NONE;
  for (const [unit, size] of [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
  ] as const) {
    if (Math.abs(value) >= size) return `${(value / size).toFixed(value / size < 100 ? 1 : 0)} ${unit}`;
  }
  return `${value} B`;
}

/** Simulated time; `stepMs` decides how many decimals distinguish two rows. */
export function time(ms: number, stepMs: number): string {
  const decimals = stepMs > 0 ? Math.max(0, Math.min(6, Math.ceil(-Math.log10(stepMs)))) : 3;
  return `${ms.toFixed(decimals)} ms`;
}

export function value(value: number, unit: string): string {
  switch (unit) {
    case "bit/s":
      return `${gbps(value)} Gb/s`;
    case "B":
      return bytes(value);
    default:
      return Number.isInteger(value) ? count(value) : fixed(value, 3);
  }
}

/** Wall time over simulated time, as `1 : 900`. */
export function slowdown(wallS: number, nowPs: number): string {
  if (nowPs === 0) return NONE;
  const ratio = wallS / (nowPs * 1e-12);
  return ratio >= 1 ? `1 : ${count(ratio)}` : `${count(1 / ratio)} : 1`;
}
