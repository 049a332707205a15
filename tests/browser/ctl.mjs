// SPDX-License-Identifier: Apache-2.0
// Watches boards over IPbus, is refused a value, changes a register of one board, then of all.

import { inBrowser, ink, rows, table } from "./browser.mjs";

const [, , url, board, wrong, one, all] = process.argv;

await inBrowser(async (page) => {
  await page.goto(url);
  await rows(page, 20);
  const before = { table: await table(page), ink: await ink(page) };
  const field = page.locator('[name="cc.rate_ai"]');
  const set = async (target, value) => {
    await page.selectOption("#target", target);
    await field.fill(value);
    await field.press("Enter");
  };
  await set(`=${board}`, wrong);
  await page.waitForSelector(".answer.wrong");
  const refused = await page.textContent(".answer");
  const logged = (count) =>
    page.waitForFunction(
      (n) => document.querySelectorAll(".log li").length >= n,
      count,
    );
  await set(`=${board}`, one);
  await logged(1);
  // The page shows what the registers hold when they are read again, not what was typed.
  await page.waitForFunction(
    ([name, value]) => {
      const { model } = window.penstock;
      const n = model.manifest.senders.findIndex((s) => s.name === name);
      return model.settings.senders[n]["cc.rate_ai"] === value;
    },
    [board, one],
  );
  await set("all", all);
  await logged(2);
  const settings = await page.evaluate(
    () => window.penstock.model.settings.senders,
  );
  return { before, refused, settings, log: await page.textContent(".log") };
});
