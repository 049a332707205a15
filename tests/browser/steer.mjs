// SPDX-License-Identifier: Apache-2.0
// Watches a live run, changes a parameter of one board on the page, then has the run end under it.

import { inBrowser, ink, rows, table } from "./browser.mjs";

const [, , url, pid, key, value, wrong] = process.argv;

await inBrowser(async (page) => {
  await page.goto(url);
  await rows(page, 20);
  const running = await page.textContent("#state");
  const before = { table: await table(page), ink: await ink(page) };

  const field = page.locator(`[name="${key}"]`);
  await page.selectOption("#target", "=board0");
  await field.fill(wrong);
  await field.press("Enter");
  await page.waitForSelector(".answer.wrong");
  const refused = await page.textContent(".answer");
  await field.fill(value);
  await field.press("Enter");
  await page.waitForFunction(() => document.querySelector(".log li"));
  const log = await page.textContent(".log");
  const from = await page.evaluate(() => window.penstock.model.rows);
  await rows(page, from + 12);
  const steered = await page.evaluate((from) => {
    const { model } = window.penstock;
    const of = (n) =>
      Array.from(
        model
          .column(model.manifest.senders[n].series.rate_current)
          .subarray(from, model.rows),
      );
    return { board0: of(0), board1: of(1), from };
  }, from);

  process.kill(Number(pid), "SIGKILL");
  await page.waitForSelector('#state[data-state="lost"]');
  const lost = {
    state: await page.textContent("#state"),
    banner: await page.textContent("#banner"),
    rows: await page.evaluate(() => window.penstock.model.rows),
  };
  return { running, before, refused, log, steered, lost };
});
