# SPDX-License-Identifier: Apache-2.0
"""Searches and proofs over a transition system: bounded search from reset, and k-induction.

A property that holds in the first `depth` cycles, and in every cycle that follows `depth` consecutive cycles in which
all properties hold, always holds (Sheeran, Singh, Stalmarck, FMCAD 2000).
"""

from dataclasses import dataclass

from bitwuzla import Bitwuzla, Kind, Option, Options, Result, TermManager
from btor import System, Unrolled


@dataclass
class Trace:
    """A run that breaks or reaches a property: `rows[t]` maps names of inputs and registers to their values."""

    reached: str
    rows: list[dict[str, int]]
    state: dict[str, int]  # of the registers in the last cycle, where another search may start

    def __str__(self) -> str:
        """Cycle by cycle, what changed; hexadecimal. Names that begin with $ are Yosys' own."""
        lines, last = [], {}
        for cycle, row in enumerate(self.rows):
            changed = [f"{name}={value:x}" for name, value in row.items() if last.get(name) != value and name[0] != "$"]
            lines.append(f"    cycle {cycle:2}: {' '.join(changed)}")
            last = row
        return "\n".join(lines)


def search(system: System, cycles: int, only: str | None = None, start: dict[str, int] | None = None) -> Trace | None:
    """The shortest run of at most `cycles` cycles that makes a bad value (or `only` it) 1.

    From the initial state, or from where another run ended: its `Trace.state`.
    """
    return _search(system, Unrolled(system, TermManager(), first=True, start=start), cycles, only)


def follow(system: System, run: Trace, name: str, start: dict[str, int] | None = None) -> Trace | None:
    """Does the run with the same inputs as `run`, of as many cycles, reach `name` here too? One question, an easy one.

    `run` may be another system's: what is not an input of both by its name is free.
    """
    here = Unrolled(system, TermManager(), first=True, start=start)
    terms = here.terms
    solver = Bitwuzla(terms, _options())
    for row in run.rows:
        here.extend()
        for constraint in system.constraints:
            solver.assert_formula(here.holds(len(here.cycles) - 1, constraint))
        for number, (operator, *_) in system.lines.items():
            if operator == "input" and system.names.get(number) in row:
                term = here.cycles[-1][number]
                value = terms.mk_bv_value(term.sort(), row[system.names[number]])
                solver.assert_formula(terms.mk_term(Kind.EQUAL, [term, value]))
    solver.assert_formula(here.holds(len(here.cycles) - 1, system.bads[name]))
    return _trace(solver, here, name) if solver.check_sat() == Result.SAT else None


def step(system: System, depth: int) -> Trace | None:
    """A run of `depth` good cycles from any state, then a bad one; None when induction holds."""
    return _search(system, Unrolled(system, TermManager(), first=False), depth + 1, None, last_only=True)


def _search(system: System, run: Unrolled, cycles: int, only: str | None, last_only: bool = False) -> Trace | None:
    terms = run.terms
    solver = Bitwuzla(terms, _options())
    targets = {only: system.bads[only]} if only else system.bads
    for cycle in range(cycles):
        run.extend()
        for constraint in system.constraints:
            solver.assert_formula(run.holds(cycle, constraint))
        for name in sorted(targets):  # what is shown first may help the next: lemmas have early names
            bad = run.holds(cycle, targets[name])
            if not last_only or cycle == cycles - 1:  # one by one: far easier than all at once
                solver.push()
                solver.assert_formula(bad)
                result = solver.check_sat()
                if result == Result.SAT:
                    return _trace(solver, run, name)
                if result != Result.UNSAT:
                    raise RuntimeError(f"the solver gave up on {name} at cycle {cycle}: {result}")
                solver.pop()
            solver.assert_formula(terms.mk_term(Kind.NOT, [bad]))
    return None


def _options() -> Options:
    options = Options()
    options.set(Option.PRODUCE_MODELS, True)
    return options


def _trace(solver: Bitwuzla, run: Unrolled, reached: str) -> Trace:
    def value(term) -> int:
        return int(solver.get_value(term).value(10))

    names, last = run.system.names, run.cycles[-1]
    rows = [{name: value(now[number]) for number, name in names.items()} for now in run.cycles]
    state = {names[number]: value(last[number]) for number in run.system.nexts if number in names}
    return Trace(reached, rows, state)
