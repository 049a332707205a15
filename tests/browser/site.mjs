// SPDX-License-Identifier: Apache-2.0
// Opens the site from its folder, searches, and lists what is found.

import { inBrowser } from "./browser.mjs";

const [address, words] = process.argv.slice(2);

await inBrowser(async (page) => {
  page.setDefaultTimeout(120_000);
  const foreign = [];
  page.on("request", (request) => {
    if (!/^(file|data|about|blob):/.test(request.url()))
      foreign.push(request.url());
  });
  await page.goto(address);
  await page.click("input.md-search__input");
  await page.keyboard.type(words);
  await page.waitForSelector("article.md-search-result__article");
  const found = await page.$$eval("a.md-search-result__link", (links) =>
    links.map((link) => link.getAttribute("href").split("/").pop()),
  );
  return { found, foreign };
});
