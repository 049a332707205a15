// SPDX-License-Identifier: Apache-2.0
// Watches a run of sixty boards for some seconds: how many redraws, and how much CPU time of the page each takes, all
// told: reading the feed, drawing, layout. CPU time, so that it does not matter what else the machine does.

import { inBrowser, rows } from "./browser.mjs";

const [, , url, seconds] = process.argv;

await inBrowser(async (page) => {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const cpu = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find((metric) => metric.name === "TaskDuration").value;
  };
  await page.goto(url);
  await rows(page, 100);
  const senders = await page.locator("#senders tbody tr").count();
  const before = {
    cpu: await cpu(),
    rows: await page.evaluate(() => window.penstock.model.rows),
  };
  await page.evaluate(() => (window.penstock.redraws.length = 0));
  await page.waitForTimeout(1000 * Number(seconds));
  const after = await page.evaluate(() => ({
    rows: window.penstock.model.rows,
    redraws: window.penstock.redraws.length,
  }));
  const used = (await cpu()) - before.cpu;
  return {
    senders,
    rows: after.rows - before.rows,
    redraws: after.redraws,
    cpu_ms: (1000 * used) / after.redraws,
  };
});
