// SPDX-License-Identifier: Apache-2.0
// The status of the page: running, boards that are silent, ended and how, stored, or disconnected from the run.

import { byId, setText } from "./dom";
import type { Link } from "./feed";
import type { Model } from "./model";

export type Source = Link | "stored";

const ENDS: Record<string, string> = {
  done: "everything was sent and answered",
  interrupted: "it was interrupted",
  "time limit": "its time limit came first",
  stopped: "storage failed",
  idle: "nothing could happen any more",
  deadlock: "ports paused each other in a circle",
};

const SILENT_NAMED = 5;

let lostAt = "";

function silentBoards(silent: string[]): string {
  const more = silent.length > SILENT_NAMED ? `; and ${silent.length - SILENT_NAMED} more` : "";
  return `Not answering: ${silent.slice(0, SILENT_NAMED).join("; ")}${more}.`;
}

export function showStatus(source: Source, model: Model): void {
  const { progress } = model,
    state = byId("state"),
    banner = byId("banner");
  const ended = progress.phase === "ended",
    silent = progress.silent;
  if (source !== "lost") lostAt = "";
  else if (!lostAt) lostAt = new Date().toLocaleTimeString();
  const name = source === "open" ? (ended ? "ended" : silent.length ? "silent" : "running") : source;
  state.dataset.state = name;
  setText(
    state,
    name === "stored"
      ? `stored run, ${progress.end || "ended"}`
      : name === "ended"
        ? `ended: ${progress.end}`
        : name === "lost"
          ? "connection lost"
          : name === "silent"
            ? `${silent.length} of ${model.manifest.all_senders} boards silent`
            : name,
  );
  const text =
    source === "lost"
      ? `The connection to the run was lost at ${lostAt}. What you see is the last that was received. Trying again every second.`
      : source === "open" && ended
        ? `The run has ended: ${ENDS[progress.end] ?? progress.end}. Its page stays until the command is stopped; report.html in the output folder keeps it.`
        : name === "silent"
          ? silentBoards(silent)
          : "";
  banner.hidden = text === "";
  banner.dataset.state = name;
  setText(banner, text);
}
