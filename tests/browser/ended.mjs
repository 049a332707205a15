// SPDX-License-Identifier: Apache-2.0
// Opens the page of a run that has ended, tries its controls, and tries to use it from a page of another origin.

import { createServer } from "node:http";
import { inBrowser, rows } from "./browser.mjs";

const [, , url] = process.argv;

await inBrowser(async (page) => {
  await page.goto(url);
  await rows(page, 10);
  await page.waitForSelector('#state[data-state="ended"]');
  const banner = await page.textContent("#banner");
  const apply = await page.locator("#controls button").isDisabled();
  const late = await page.evaluate(async () => {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("control", {
      method: "POST",
      headers,
      body: JSON.stringify({ set: { "cc.law": "off" } }),
    });
    return { status: answer.status, text: await answer.text() };
  });
  const counters = await page
    .locator("#details .heading + tr th")
    .first()
    .textContent();

  const other = createServer((_, response) =>
    response.end("<!doctype html><title>other</title>"),
  );
  await new Promise((ready) => other.listen(0, "127.0.0.1", ready));
  await page.goto(`http://127.0.0.1:${other.address().port}/`);
  const foreign = await page.evaluate(
    async (url) => {
      const tried = (what) =>
        what.then(
          (answer) => `got ${answer.status}`,
          () => "refused",
        );
      const simple = {
        method: "POST",
        headers: { "Content-Type": "text/plain" },
        body: '{"set":{"cc.law":"off"}}',
      };
      const feed = await new Promise((done) => {
        const source = new EventSource(`${url}/feed`);
        source.onerror = () => done("refused");
        source.addEventListener("hello", () => done("got data"));
      });
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.src = url;
      await new Promise((done) => (frame.onload = done));
      // What an error page of the browser shows cannot be seen from here either, but it is no page of the server.
      return {
        read: await tried(fetch(`${url}/app.js`)),
        post: await tried(fetch(`${url}/control`, simple)),
        feed,
      };
    },
    url.replace(/\/$/, ""),
  );
  other.close();
  return { banner, apply, late, counters, foreign };
});
