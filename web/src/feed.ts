// SPDX-License-Identifier: Apache-2.0
// The connection to the run: receives its feed, reconnects when the connection is lost, sends controls.
// Promise: a lost connection is noticed within seconds, reported, and resumed where it broke off.

import type { Model } from "./model";
import type { Applied, Control, Hello, Progress, Rows, Settings, Summary } from "./protocol";

export type Link = "connecting" | "open" | "lost";

/** The server speaks every half second at least. */
const SILENCE_MS = 4000;
const RETRY_MS = 1000;

export class Feed {
  link: Link = "connecting";
  private source: EventSource | null = null;
  private run = "";
  private generation = 0;
  private watchdog = 0;

  constructor(
    private readonly model: Model,
    /** Something is new; `shape`: also what there is to be shown. */
    private readonly changed: (shape: boolean) => void,
  ) {}

  connect(): void {
    const seen = new URLSearchParams();
    if (this.run) {
      seen.set("run", this.run);
      seen.set("generation", String(this.generation));
      seen.set("row", String(this.model.rows));
    }
    const source = new EventSource(`feed?${seen}`);
    this.source = source;
    const on = <T>(name: string, take: (data: T) => void) =>
      source.addEventListener(name, (event) => {
        this.markAlive();
        take(JSON.parse((event as MessageEvent<string>).data) as T);
      });
    on<Hello>("hello", (hello) => {
      if (hello.run !== this.run) this.model.summary = null;
      this.run = hello.run;
      this.generation = hello.generation;
      this.model.hello(hello);
      this.changed(true);
    });
    on<Settings>("settings", (settings) => {
      this.model.settings = settings;
      this.changed(true);
    });
    on<Applied[]>("applied", (applied) => {
      this.model.applied = applied;
      this.changed(true);
    });
    on<Progress>("progress", (progress) => {
      this.model.progress = progress;
      this.changed(false);
    });
    on<Rows>("rows", (rows) => {
      this.model.add(rows);
      this.changed(false);
    });
    on<Summary>("summary", (summary) => {
      this.model.summary = summary;
      this.changed(true);
    });
    source.onerror = () => this.lose();
    this.watch();
  }

  /** Sends a control; resolves when the run has taken it. */
  async steer(control: Control): Promise<void> {
    let answer: Response;
    try {
      const headers = { "Content-Type": "application/json" };
      answer = await fetch("control", { method: "POST", headers, body: JSON.stringify(control) });
    } catch {
      throw new Error("the connection to the run is lost: nothing was changed");
    }
    if (!answer.ok) throw new Error(await answer.text());
  }

  private markAlive(): void {
    this.watch();
    if (this.link === "open") return;
    this.link = "open";
    this.changed(false);
  }

  private watch(): void {
    clearTimeout(this.watchdog);
    this.watchdog = window.setTimeout(() => this.lose(), SILENCE_MS);
  }

  private lose(): void {
    clearTimeout(this.watchdog);
    this.source?.close();
    this.link = "lost";
    this.changed(false);
    window.setTimeout(() => this.connect(), RETRY_MS);
  }
}
