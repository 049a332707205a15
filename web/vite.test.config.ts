// SPDX-License-Identifier: Apache-2.0
// Builds the unit tests for `node --test`.
import { readdirSync } from "node:fs";
import { defineConfig } from "vite";

const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts"));

export default defineConfig({
  build: {
    ssr: true,
    outDir: "../build/web-test",
    emptyOutDir: true,
    rollupOptions: { input: tests.map((name) => `test/${name}`) },
  },
});
