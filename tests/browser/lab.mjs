// SPDX-License-Identifier: Apache-2.0
// Opens a stored run of a laboratory and reads its tiles, its verdict and what its switches had in force.

import { inBrowser, ink, rows } from "./browser.mjs";

const [, , url] = process.argv;

await inBrowser(async (page) => {
  await page.goto(url);
  await rows(page, 1);
  await page.waitForSelector("#verdict li");
  const tiles = {};
  for (const tile of await page.locator("#tiles > div").all()) {
    const [name, value, of] = await tile
      .locator("dt, dd")
      .evaluateAll((parts) => parts.map((part) => part.textContent));
    tiles[name] = {
      value: value.replaceAll("\u202f", ""),
      of: of.replaceAll("\u202f", ""),
    };
  }
  return {
    tiles,
    verdict: await page.locator("#verdict li").allTextContents(),
    inForce: await page.locator("#in-force td").allTextContents(),
    axes: await page.evaluate(() => window.penstock.axes()),
    coloured: await page.locator("#senders tbody input:checked").count(),
    ink: await ink(page),
  };
});
