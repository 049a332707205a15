// SPDX-License-Identifier: Apache-2.0
// Watches a live run, changes a parameter of one board on the page, has the run fall silent and speak again, then die.

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

  const told = () =>
    page.evaluate(() => {
      const { model } = window.penstock;
      const column = model.manifest.senders[0].series.rate_current;
      return Array.from(model.column(column).subarray(0, model.rows));
    });
  process.kill(Number(pid), "SIGSTOP");
  await page.waitForSelector('#state[data-state="lost"]');
  const until = await told();
  process.kill(Number(pid), "SIGCONT");
  await page.waitForSelector('#state[data-state="running"]');
  await rows(page, until.length + 5);
  const since = await told();
  const back = {
    rows: since.length - until.length,
    same: until.every((value, row) => Object.is(value, since[row])),
    gaps: since.slice(1).filter(Number.isNaN).length,
  };

  process.kill(Number(pid), "SIGKILL");
  await page.waitForSelector('#state[data-state="lost"]');
  const lost = {
    state: await page.textContent("#state"),
    banner: await page.textContent("#banner"),
    rows: await page.evaluate(() => window.penstock.model.rows),
  };
  return { running, before, refused, log, steered, back, lost };
});
