// SPDX-License-Identifier: Apache-2.0
// The controls: parameters of chosen boards and of the switch, sent to the run and answered by it.
// Promise: a field that is not being edited shows the value in force; an error of the run is shown verbatim.

import { byId, indexed, make, setText } from "./dom";
import * as format from "./format";
import type { Model } from "./model";
import type { Control, Parameter } from "./protocol";

const MIXED = "mixed";

interface Field {
  parameter: Parameter;
  input: HTMLInputElement | HTMLSelectElement;
  /** What is in force. */
  inForce: string;
}

export class Controls {
  private fields: Field[] = [];
  private target = make("select", { id: "target" });
  private status = make("p", { className: "answer" });
  private apply = make("button", { type: "submit", textContent: "Apply", className: "primary" });
  private log = make("ol", { className: "log" });

  constructor(
    private readonly model: Model,
    private readonly selected: () => number[],
    private readonly send: (control: Control) => Promise<void>,
  ) {
    this.status.setAttribute("role", "status");
    this.target.addEventListener("change", () => this.update());
  }

  /** Makes the form anew; only when the run is another. */
  build(): void {
    const { parameters, senders } = this.model.manifest;
    const card = byId("controls");
    card.hidden = parameters.length === 0;
    if (card.hidden) return;
    const choices = [
      make("option", { value: "all", textContent: `all ${senders.length} boards` }),
      make("option", { value: "selected", textContent: "the selected boards" }),
    ];
    for (const { name } of senders) choices.push(make("option", { value: `=${name}`, textContent: name }));
    this.target.replaceChildren(...choices);
    this.fields = parameters.map((parameter) => {
      const input = this.input(parameter);
      // What a list begins with is no edit.
      return { parameter, input, inForce: input.value };
    });
    const group = (scope: Parameter["scope"]) =>
      this.fields
        .filter((field) => field.parameter.scope === scope)
        .map(({ parameter, input }) =>
          make("label", { title: parameter.help }, make("span", {}, ...indexed(parameter.label)), input),
        );
    const fieldset = (name: string, ...children: HTMLElement[]) =>
      make("fieldset", {}, make("legend", { textContent: name }), ...children);
    const form = make("form", { noValidate: true, autocomplete: "off" });
    const of_senders = group("sender"),
      of_run = group("run");
    if (of_senders.length)
      form.append(
        fieldset(
          "DCQCN, by the boards' registers",
          make("label", {}, make("span", { textContent: "Boards" }), this.target),
          ...of_senders,
        ),
      );
    if (of_run.length) form.append(fieldset("Switch", ...of_run));
    form.append(make("div", { className: "bar" }, this.apply, this.status));
    form.addEventListener("submit", (event) => void this.submit(event));
    form.addEventListener("input", () => this.mark());
    card.replaceChildren(make("h2", { id: "controls-title", textContent: "Controls" }), form, this.log);
    this.update();
  }

  /** Shows what is in force, but for fields that are being edited. */
  update(): void {
    const { settings, progress, manifest } = this.model;
    const names = this.names();
    const targets = manifest.senders.flatMap((sender, n) =>
      names.includes(sender.name) ? [settings.senders[n] ?? {}] : [],
    );
    for (const field of this.fields) {
      const { key, scope } = field.parameter;
      const values = scope === "run" ? [settings.run[key] ?? ""] : targets.map((target) => target[key] ?? "");
      const edited = this.isEdited(field);
      field.inForce = values.every((value) => value === values[0]) ? (values[0] ?? "") : MIXED;
      if (!edited) this.show(field);
    }
    const over = progress.phase === "ended";
    this.apply.disabled = over;
    for (const { input } of this.fields) input.disabled = over;
    if (over) setText(this.status, "The run has ended: nothing can be changed any more.");
    this.log.replaceChildren(
      ...this.model.applied.map((one) => {
        const what = Object.entries(one.set)
          .map(([name, value]) => `${name} = ${value}`)
          .join(", ");
        const who = one.senders.length > 3 ? `${one.senders.length} boards` : one.senders.join(", ") || "switch";
        const item = make(
          "li",
          {},
          make("time", { textContent: format.time(one.at_ps / 1e9, this.model.stepMs) }),
          ` ${who}: ${what}`,
        );
        item.title = (one.registers ?? [])
          .map(([address, word]) => `0x${address.toString(16)} = 0x${word.toString(16)}`)
          .join("\n");
        return item;
      }),
    );
    this.mark();
  }

  focus(): void {
    this.target.focus();
  }

  private input(parameter: Parameter): HTMLInputElement | HTMLSelectElement {
    const element = parameter.choices.length
      ? make(
          "select",
          {},
          ...[...parameter.choices, MIXED].map((value) =>
            make("option", { value, textContent: value, hidden: value === MIXED }),
          ),
        )
      : make("input", { type: "text", spellcheck: false });
    element.name = parameter.key;
    return element;
  }

  private show(field: Field): void {
    const { input, inForce } = field;
    if (input instanceof HTMLInputElement) {
      input.placeholder = inForce === MIXED ? MIXED : "";
      input.value = inForce === MIXED ? "" : inForce;
    } else input.value = inForce;
  }

  private isEdited({ input, inForce }: Field): boolean {
    return input.value !== (inForce === MIXED && input instanceof HTMLInputElement ? "" : inForce);
  }

  private mark(): void {
    for (const field of this.fields) field.input.classList.toggle("edited", this.isEdited(field));
  }

  private names(): string[] {
    const { senders } = this.model.manifest,
      target = this.target.value;
    if (target.startsWith("=")) return [target.slice(1)];
    const all = senders.map((sender) => sender.name);
    return target === "selected" ? this.selected().flatMap((n) => all[n] ?? []) : all;
  }

  private async submit(event: Event): Promise<void> {
    event.preventDefault();
    const edited = this.fields.filter((field) => this.isEdited(field) && field.input.value.trim() !== "");
    const senders = this.names();
    const set = Object.fromEntries(edited.map(({ parameter, input }) => [parameter.key, input.value.trim()]));
    if (!edited.length) return this.report("Nothing was edited.", false);
    if (!senders.length && edited.some(({ parameter }) => parameter.scope === "sender"))
      return this.report("No board is selected.", true);
    this.report("waiting for the run…", false);
    try {
      await this.send({ senders, set });
      for (const field of edited) field.inForce = field.input.value;
      this.update();
      this.report("Applied.", false);
    } catch (error) {
      this.report(error instanceof Error ? error.message : String(error), true);
    }
  }

  private report(text: string, wrong: boolean): void {
    this.status.classList.toggle("wrong", wrong);
    setText(this.status, text);
  }
}
