// SPDX-License-Identifier: Apache-2.0
// The senders that are drawn in their own colour, at most as many as there are colours; the others are drawn grey.

import { SENDER_COLOURS } from "./palette";

export class Selection {
  /** Sender by colour. */
  private readonly slots: (number | null)[] = Array.from({ length: SENDER_COLOURS }, () => null);

  /** The colour of a sender; none: it is not selected. */
  colour(sender: number): number | null {
    const at = this.slots.indexOf(sender);
    return at < 0 ? null : at;
  }

  /** Senders in their order, with their colours. */
  get all(): { sender: number; colour: number }[] {
    const chosen = this.slots.flatMap((sender, colour) => (sender === null ? [] : [{ sender, colour }]));
    return chosen.sort((a, b) => a.sender - b.sender);
  }

  get isFull(): boolean {
    return !this.slots.includes(null);
  }

  /** A sender keeps its colour while it is selected. When all colours are taken nothing happens. */
  toggle(sender: number): void {
    const at = this.slots.indexOf(sender);
    if (at >= 0) this.slots[at] = null;
    else if (!this.isFull) this.slots[this.slots.indexOf(null)] = sender;
  }

  /** The first senders, or none. */
  first(count: number): void {
    this.slots.fill(null);
    for (let sender = 0; sender < Math.min(count, this.slots.length); sender++) this.slots[sender] = sender;
  }
}
