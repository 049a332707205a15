// SPDX-License-Identifier: Apache-2.0
// Starts headless Chromium for a test of the live page, runs it, and prints what it found as JSON.

import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { chromium } = createRequire(
  new URL("../../web/package.json", import.meta.url),
)("playwright-core");

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Calls `test(page)` and prints its result; errors of the page fail it. */
export async function inBrowser(test, options = {}) {
  const profile = mkdtempSync(join(tmpdir(), "penstock-page-"));
  const executablePath = process.env.PENSTOCK_CHROMIUM ?? "/usr/bin/chromium";
  const viewport = { width: 1440, height: 1000 };
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    args: FLAGS,
    viewport,
    ...options,
  });
  try {
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(30_000);
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    const found = await test(page);
    console.log(JSON.stringify({ ...found, errors }));
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

/** Waits until so many rows of the run are on the page. */
export async function rows(page, least) {
  await page.waitForFunction(
    (least) => window.penstock?.model.rows >= least,
    least,
  );
}

/** What the table says of every sender: the text of each cell and the exact value of its title. */
export function table(page) {
  return page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll("#senders tbody tr")].map((row) => [
        row.dataset.sender,
        Object.fromEntries(
          [...row.querySelectorAll("td")].map((cell) => [
            cell.dataset.series,
            { text: cell.textContent, exact: cell.title },
          ]),
        ),
      ]),
    ),
  );
}

/** How many pixels of each chart have the colour of a selected sender, or of the queue. */
export function ink(page) {
  return page.evaluate(() => {
    const count = (canvas) => {
      const { data } = canvas
        .getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
      let coloured = 0;
      for (let at = 0; at < data.length; at += 4) {
        if (
          data[at + 3] > 200 &&
          Math.max(data[at], data[at + 1], data[at + 2]) -
            Math.min(data[at], data[at + 1], data[at + 2]) >
            60
        )
          coloured++;
      }
      return coloured;
    };
    return Object.fromEntries(
      [...document.querySelectorAll(".chart")].map((card) => [
        card.id,
        count(card.querySelector("canvas")),
      ]),
    );
  });
}
