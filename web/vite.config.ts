// SPDX-License-Identifier: Apache-2.0
// Builds the page into build/web: index.html, app.js and app.css, which crates/dashboard embeds.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  plugins: [
    {
      // Everything is of one origin, and a report has no origin at all.
      name: "plain-tags",
      transformIndexHtml: { order: "post", handler: (html) => html.replaceAll(" crossorigin", "") },
    },
  ],
  build: {
    outDir: "../build/web",
    emptyOutDir: true,
    modulePreload: false,
    target: "es2022",
    rollupOptions: { output: { entryFileNames: "app.js", assetFileNames: "app.[ext]", codeSplitting: false } },
  },
});
