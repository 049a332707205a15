// SPDX-License-Identifier: Apache-2.0
// Reads the run stored in report.html: base64 of gzip of the values' bytes, grouped by significance.

import type { Stored } from "./protocol";

/** The bytes of little-endian doubles, put back in their order. */
export function untranspose(planes: Uint8Array): Float64Array {
  const count = planes.length / 8;
  const bytes = new Uint8Array(planes.length);
  for (let weight = 0; weight < 8; weight++) {
    const plane = weight * count;
    for (let n = 0; n < count; n++) bytes[n * 8 + weight] = planes[plane + n] ?? 0;
  }
  const view = new DataView(bytes.buffer);
  return Float64Array.from({ length: count }, (_, n) => view.getFloat64(n * 8, true));
}

export async function unpack(base64: string): Promise<Float64Array> {
  const text = atob(base64);
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return untranspose(new Uint8Array(await new Response(stream).arrayBuffer()));
}

/** The stored run of this document; none: the page is live. */
export async function storedRun(): Promise<{ stored: Stored; values: Float64Array } | null> {
  const run = document.getElementById("run")?.textContent;
  const values = document.getElementById("values")?.textContent;
  if (!run || values === null || values === undefined) return null;
  return { stored: JSON.parse(run) as Stored, values: await unpack(values.trim()) };
}
