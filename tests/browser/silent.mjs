// SPDX-License-Identifier: Apache-2.0
// Waits until the page's state is the wanted one, and reads it and the banner.

import { inBrowser } from "./browser.mjs";

const [, , url, wanted = "silent"] = process.argv;

await inBrowser(async (page) => {
  await page.goto(url);
  await page.waitForSelector(`#state[data-state="${wanted}"]`);
  const text = (id) => page.textContent(`#${id}`);
  return {
    name: wanted,
    state: await text("state"),
    banner: await text("banner"),
  };
});
