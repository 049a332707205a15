// SPDX-License-Identifier: Apache-2.0
// Small helpers for the document. Text is always set as text, never as HTML.

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

type Child = Node | string;

/** An element with properties and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<HTMLElementTagNameMap[K]> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** A text in which `R_C` has its index below the line. */
export function indexed(text: string): Child[] {
  return text.split(/(?<=\b[RKP])_(\w+)/).map((part, n) => (n % 2 ? make("sub", { textContent: part }) : part));
}

/** Sets a text if it is another: most cells stay as they are from one frame to the next. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setTitle(element: HTMLElement, title: string): void {
  if (element.title !== title) element.title = title;
}
