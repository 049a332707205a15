// SPDX-License-Identifier: Apache-2.0
// Colours of the charts, from the style sheet: one set for light, one for dark.

export interface Palette {
  senders: string[];
  text: string;
  muted: string;
  card: string;
  grid: string;
  context: string;
  limit: string;
  queue: string;
  queueFill: string;
  pause: string;
  hold: string;
}

/** Number of senders with distinguishable colours. */
export const SENDER_COLOURS = 8;

export function palette(): Palette {
  // A canvas cannot use CSS variables, so an element resolves them.
  const probe = document.body.appendChild(document.createElement("i"));
  const of = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    senders: Array.from({ length: SENDER_COLOURS }, (_, n) => of(`series-${n + 1}`)),
    text: of("text"),
    muted: of("muted"),
    card: of("card"),
    grid: of("grid"),
    context: of("context"),
    limit: of("limit"),
    queue: of("queue"),
    queueFill: of("queue-fill"),
    pause: of("pause"),
    hold: of("hold"),
  };
  probe.remove();
  return colours;
}

/** Light, dark, or the setting of the system; kept for the next visit where the browser allows it. */
export function toggleTheme(): void {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("penstock-theme", root.dataset.theme);
  } catch {
    // A page from a file may have no storage.
  }
}

export function restoreTheme(): void {
  try {
    const theme = localStorage.getItem("penstock-theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch {
    // A page from a file may have no storage.
  }
}
