// SPDX-License-Identifier: Apache-2.0
// Watches a live board, changes the threshold of its emulated switch and a parameter of its rate limiter on the page.

import { inBrowser, ink, rows } from "./browser.mjs";

const [, , url, threshold, key, value] = process.argv;

async function set(page, name, text, changes) {
  const field = page.locator(`[name="${name}"]`);
  await field.fill(text);
  await field.press("Enter");
  await page.waitForFunction(
    (n) => document.querySelectorAll(".log li").length >= n,
    changes,
  );
}

await inBrowser(async (page) => {
  await page.goto(url);
  await rows(page, 30);
  const current = () =>
    page.evaluate(() => {
      const { model } = window.penstock;
      return model.latest(
        model.manifest.senders[0].series.rate_current,
        model.rows - 1,
      );
    });
  const before = { current: await current(), ink: await ink(page) };
  await set(page, "switch.threshold", threshold, 1);
  await page.waitForFunction(
    () => window.penstock.model.settings.threshold_bps === 3e9,
  );
  await set(page, key, value, 2);
  await page.waitForFunction(() => {
    const { model } = window.penstock;
    const column = model.manifest.senders[0].series.rate_current;
    return model.latest(column, model.rows - 1) > 9e9;
  });
  return { before, log: await page.textContent(".log") };
});
