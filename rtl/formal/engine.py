# SPDX-License-Identifier: Apache-2.0
"""Searches and proofs over a transition system: bounded search from reset, and k-induction.

A property that holds in the first `depth` cycles, and in every cycle that follows `depth` consecutive cycles in which
all properties hold, always holds (Sheeran, Singh, Stalmarck, FMCAD 2000).
"""

from collections.abc import Iterable, Iterator
from functools import cached_property

from bitwuzla import Bitwuzla, Kind, Option, Options, Result, Term, TermManager
from btor import System, Unrolled


class Trace:
    """A run that breaks or reaches a property. What the solver has found is read from it when it is asked for."""

    def __init__(self, solver: Bitwuzla, run: Unrolled, cycles: int, reached: str) -> None:
        self.reached, self.cycles = reached, cycles
        self._solver, self._run = solver, run

    @cached_property
    def inputs(self) -> list[dict[str, int]]:
        """Cycle by cycle, the values of the inputs that have a name."""
        return self._rows([number for number, (operator, *_) in self._run.system.lines.items() if operator == "input"])

    @cached_property
    def state(self) -> dict[str, int]:
        """Of the registers in the last cycle, where another search may start."""
        return self._row(self.cycles - 1, self._run.system.nexts)

    def release(self, goes_on: bool) -> "Trace":
        """Lets go of the solver, which is large. If a search goes on from here, what it asks for is read before."""
        if goes_on:
            _ = self.inputs, self.state
        del self._solver, self._run
        return self

    def __str__(self) -> str:
        """Cycle by cycle, what changed; hexadecimal. Names that begin with $ are Yosys' own."""
        lines, last = [], {}
        for cycle, row in enumerate(self._rows(self._run.system.names)):
            changed = [f"{name}={value:x}" for name, value in row.items() if last.get(name) != value and name[0] != "$"]
            lines.append(f"    cycle {cycle:2}: {' '.join(changed)}")
            last = row
        return "\n".join(lines)

    def _rows(self, numbers: Iterable[int]) -> list[dict[str, int]]:
        return [self._row(cycle, numbers) for cycle in range(self.cycles)]

    def _row(self, cycle: int, numbers: Iterable[int]) -> dict[str, int]:
        names, now = self._run.system.names, self._run.cycles[cycle]
        return {names[n]: int(self._solver.get_value(now[n]).value(10)) for n in numbers if n in names}


def search(
    system: System, cycles: int, only: str, start: dict[str, int] | None = None, window: int = 1
) -> Trace | None:
    """A run of at most `cycles` cycles to where the bad value `only` is 1; one question asks of `window` cycles.

    From the initial state, or from where another run ended: its `Trace.state`.
    """
    run = Unrolled(system, TermManager(), first=True, start=start)
    solver = Bitwuzla(run.terms, _options())
    for requested in _windows(cycles, window):
        for cycle in requested:
            run.extend()
            _assume(solver, run, cycle)  # a run that can go on for the rest of the window will do
        if found := _solve(solver, run, only, requested):
            return found
    return None


def base(system: System, depth: int, window: int = 1) -> Trace | None:
    """A run of at most `depth` cycles from the initial state that makes a bad value 1; None when there is none."""
    run = Unrolled(system, TermManager(), first=True)
    solver = Bitwuzla(run.terms, _options())
    for requested in _windows(depth, window):
        for _ in requested:
            run.extend()
        _assume(solver, run, requested[0])
        if found := _solve_all(solver, run, requested, sorted(system.bads)):
            return found
        for cycle in requested[1:]:
            _assume(solver, run, cycle)
    return None


def step(system: System, depth: int, apart: bool = False) -> Trace | None:
    """A run of `depth` good cycles from any state, then a bad one; None when induction holds.

    `apart`: each property has a solver of its own, which is faster where single questions are hard.
    """
    # What is shown first may help the next: lemmas have early names.
    names = sorted(system.bads)
    for at in range(len(names) if apart else 1):
        run, solver = _after_good_cycles(system, depth)
        for name in names[:at]:
            solver.assert_formula(_not(run, run.holds(depth, system.bads[name])))
        requested = names[at : at + 1] if apart else names
        if found := _solve_all(solver, run, range(depth, depth + 1), requested):
            return found
    return None


def _after_good_cycles(system: System, depth: int) -> tuple[Unrolled, Bitwuzla]:
    run = Unrolled(system, TermManager(), first=False)
    solver = Bitwuzla(run.terms, _options())
    for cycle in range(depth + 1):
        run.extend()
        _assume(solver, run, cycle)
        for value in system.bads.values() if cycle < depth else ():
            solver.assert_formula(_not(run, run.holds(cycle, value)))
    return run, solver


def follow(system: System, run: Trace, name: str, start: dict[str, int] | None = None) -> Trace | None:
    """Does the run with the same inputs as `run`, of as many cycles, reach `name` here too? One question, an easy one.

    `run` may be another system's: what is not an input of both by its name is free.
    """
    here = Unrolled(system, TermManager(), first=True, start=start)
    terms = here.terms
    solver = Bitwuzla(terms, _options())
    for row in run.inputs:
        here.extend()
        for constraint in system.constraints:
            solver.assert_formula(here.holds(len(here.cycles) - 1, constraint))
        for number, (operator, *_) in system.lines.items():
            if operator == "input" and system.names.get(number) in row:
                term = here.cycles[-1][number]
                value = terms.mk_bv_value(term.sort(), row[system.names[number]])
                solver.assert_formula(terms.mk_term(Kind.EQUAL, [term, value]))
    solver.assert_formula(here.holds(len(here.cycles) - 1, system.bads[name]))
    return Trace(solver, here, len(here.cycles), name) if solver.check_sat() == Result.SAT else None


def _windows(cycles: int, window: int) -> Iterator[range]:
    return (range(first, min(first + window, cycles)) for first in range(0, cycles, window))


def _assume(solver: Bitwuzla, run: Unrolled, cycle: int) -> None:
    for constraint in run.system.constraints:
        solver.assert_formula(run.holds(cycle, constraint))


def _not(run: Unrolled, formula: Term) -> Term:
    return run.terms.mk_term(Kind.NOT, [formula])


def _solve_all(solver: Bitwuzla, run: Unrolled, window: range, names: list[str]) -> Trace | None:
    """One property after the other: far easier than all at once."""
    return next(filter(None, (_solve(solver, run, name, window) for name in names)), None)


def _solve(solver: Bitwuzla, run: Unrolled, name: str, window: range) -> Trace | None:
    """A run in which a bad value is 1 in a cycle of the window; the solver then remembers if there is none.

    Constraints hold in the first of these cycles, and count up to the bad one: behind it they may be impossible.
    """
    make, constraints = run.terms.mk_term, run.system.constraints
    bads = [run.holds(cycle, run.system.bads[name]) for cycle in window]
    question = bads[-1]
    for cycle, bad in zip(reversed(window[:-1]), reversed(bads[:-1]), strict=True):
        allowed = [run.holds(cycle + 1, constraint) for constraint in constraints]
        question = make(Kind.OR, [bad, make(Kind.AND, [question, *allowed]) if allowed else question])
    solver.push()
    solver.assert_formula(question)
    result = solver.check_sat()
    if result == Result.SAT:
        cycle = next(cycle for cycle, bad in zip(window, bads, strict=True) if solver.get_value(bad).value())
        return Trace(solver, run, cycle + 1, name)
    if result != Result.UNSAT:
        raise RuntimeError(f"the solver gave up on {name} in cycles {window[0]} to {window[-1]}: {result}")
    solver.pop()
    solver.assert_formula(_not(run, question))
    return None


def _options() -> Options:
    options = Options()
    options.set(Option.PRODUCE_MODELS, True)
    return options
