// SPDX-License-Identifier: Apache-2.0
// Opens a stored run from its file, reads values at chosen samples with the keyboard alone, and looks at the charts.

import { inBrowser, ink, rows, table } from "./browser.mjs";

const [, , url, ...samples] = process.argv;

await inBrowser(async (page) => {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(url);
  await rows(page, 1);
  await page.waitForSelector("#senders tbody tr");
  const tiles = await page.locator("#tiles div").allInnerTexts();
  const read = {};
  for (const sample of samples) {
    await page.keyboard.press("Home");
    for (let left = Number(sample); left > 0; left -= left >= 20 ? 20 : 1)
      await page.keyboard.press(left >= 20 ? "Shift+ArrowRight" : "ArrowRight");
    await page.waitForFunction(
      (row) => window.penstock.view.cursor === row,
      Number(sample),
    );
    await page.evaluate(
      () =>
        new Promise((done) =>
          requestAnimationFrame(() => requestAnimationFrame(done)),
        ),
    );
    read[sample] = {
      values: await table(page),
      when: await page.textContent("#when"),
    };
  }
  // Tab reaches the buttons, the table and more, in their order, and the focus is seen.
  await page.evaluate(() => document.activeElement?.blur());
  const reached = [];
  for (let n = 0; n < 16; n++) {
    await page.keyboard.press("Tab");
    reached.push(
      await page.evaluate(
        () =>
          document.activeElement.id ||
          document.activeElement.type ||
          document.activeElement.tagName,
      ),
    );
    if (
      n === 2 &&
      (await page.evaluate(
        () => getComputedStyle(document.activeElement).outlineStyle,
      )) === "none"
    )
      reached.push("unseen");
  }
  await page.keyboard.press("?");
  const keys = await page.locator("dialog[open] kbd").allTextContents();
  await page.keyboard.press("Escape");
  const contrast = {};
  for (const theme of ["light", "dark"]) {
    await page.evaluate(
      (theme) => (document.documentElement.dataset.theme = theme),
      theme,
    );
    contrast[theme] = await page.evaluate(leastContrast);
  }
  const state = await page.textContent("#state");
  const drawn = await ink(page);
  await page.setViewportSize({ width: 390, height: 844 });
  const isNarrow = () => document.documentElement.scrollWidth <= 390;
  const narrow = await page.waitForFunction(isNarrow).then(
    () => true,
    () => false,
  );
  return {
    tiles,
    narrow,
    read,
    ink: drawn,
    reached,
    keys,
    contrast,
    state,
    asked: asked.slice(1),
  };
});

/** WCAG 2.2, 1.4.3: the least contrast between a colour of text and the ground it stands on. */
function leastContrast() {
  const probe = document.body.appendChild(document.createElement("i"));
  const luminance = (name) => {
    probe.style.color = `var(--${name})`;
    const [r, g, b] = getComputedStyle(probe)
      .color.match(/[\d.]+/g)
      .map((part) => {
        const level = part / 255;
        return level <= 0.04045
          ? level / 12.92
          : ((level + 0.055) / 1.055) ** 2.4;
      });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const series = Array.from({ length: 8 }, (_, n) => `series-${n + 1}`);
  const pairs = [
    ["text", "card"],
    ["text", "ground"],
    ["muted", "card"],
    ["muted", "ground"],
    ["accent", "card"],
    ["accent-text", "accent"],
    ["bad", "bad-ground"],
    ["good", "good-ground"],
    ...series.map((name) => [name, "card"]),
  ];
  const ratios = pairs.map(([one, other]) => {
    const [high, low] = [luminance(one), luminance(other)].sort(
      (a, b) => b - a,
    );
    return (high + 0.05) / (low + 0.05);
  });
  probe.remove();
  return Math.min(...ratios);
}
