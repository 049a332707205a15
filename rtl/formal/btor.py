# SPDX-License-Identifier: Apache-2.0
"""A transition system read from BTOR2 text, as terms of the SMT solver Bitwuzla, cycle by cycle.

Niemetz et al., "BTOR2, BtorMC and Boolector 3.0", CAV 2018, figure 1; only what Yosys' `write_btor` writes: bit
vectors without arrays (memories are mapped to registers before).
"""

import re
from dataclasses import dataclass, field

from bitwuzla import Kind, Term, TermManager

UNARY = {"not": Kind.BV_NOT, "neg": Kind.BV_NEG, "redand": Kind.BV_REDAND, "redor": Kind.BV_REDOR}
UNARY |= {"redxor": Kind.BV_REDXOR, "inc": Kind.BV_INC, "dec": Kind.BV_DEC}
BINARY = {name: getattr(Kind, f"BV_{name.upper()}") for name in ("and", "nand", "nor", "or", "xor", "xnor")}
BINARY |= {name: getattr(Kind, f"BV_{name.upper()}") for name in ("add", "sub", "mul", "udiv", "urem", "sdiv", "srem")}
BINARY |= {"sll": Kind.BV_SHL, "srl": Kind.BV_SHR, "sra": Kind.BV_ASHR, "concat": Kind.BV_CONCAT}
COMPARE = {"eq": Kind.EQUAL, "neq": Kind.DISTINCT, "iff": Kind.EQUAL}
COMPARE |= {"ult": Kind.BV_ULT, "ulte": Kind.BV_ULE, "ugt": Kind.BV_UGT, "ugte": Kind.BV_UGE}
COMPARE |= {"slt": Kind.BV_SLT, "slte": Kind.BV_SLE, "sgt": Kind.BV_SGT, "sgte": Kind.BV_SGE}
CONSTANTS = ("const", "constd", "consth")
LEAVES = ("input", "state", "zero", "one", "ones", *CONSTANTS)
NUMBER = re.compile("-?[0-9]+")
DICTIONARIES = ("widths", "lines", "names", "inits", "nexts")  # of System, by line number


@dataclass
class System:
    """The lines of a BTOR2 file, sorted by what they are. A value is its line's number, negative for the complement."""

    widths: dict[int, int] = field(default_factory=dict)  # of each value
    lines: dict[int, list[str]] = field(default_factory=dict)  # of operators, inputs and states, in the file's order
    names: dict[int, str] = field(default_factory=dict)  # of inputs, registers and outputs that have one
    inits: dict[int, int] = field(default_factory=dict)  # state -> value in the first cycle
    nexts: dict[int, int] = field(default_factory=dict)  # state -> value in the next cycle
    constraints: list[int] = field(default_factory=list)
    bads: dict[str, int] = field(default_factory=dict)  # property -> value that is 1 where it is broken (or covered)

    def cone(self) -> "System":
        """The same without what neither a property nor a constraint depends on."""
        needed: set[int] = set()
        waiting = [abs(number) for number in (*self.bads.values(), *self.constraints)]
        while waiting:
            number = waiting.pop()
            if number in needed:
                continue
            needed.add(number)
            waiting += self._operands(number)
            waiting += [abs(links[number]) for links in (self.inits, self.nexts) if number in links]
        return System(
            **{name: {n: value for n, value in getattr(self, name).items() if n in needed} for name in DICTIONARIES},
            constraints=self.constraints,
            bads=self.bads,
        )

    def _operands(self, number: int) -> list[int]:
        operator, *args = self.lines[number]
        if operator in LEAVES:
            return []
        return [abs(int(arg)) for arg in (args[:1] if operator in ("slice", "uext", "sext") else args)]


def parse(text: str) -> System:
    """Reads BTOR2, all of it. Raises ValueError with the line for what it does not know."""
    system, sorts = System(), {}
    for line in text.splitlines():
        words, _, _ = line.partition(" ;")
        match words.split():
            case [] | [";", *_]:
                continue
            case [number, "sort", "bitvec", width]:
                sorts[number] = int(width)
            case [_, "init", _, state, value, *_]:
                system.inits[int(state)] = int(value)
            case [_, "next", _, state, value, *name]:
                system.nexts[int(state)] = int(value)
                if name:
                    system.names.setdefault(int(state), name[0])
            case [_, "constraint", value, *_]:
                system.constraints.append(int(value))
            case [_, "bad", value, *name]:
                system.bads[name[0] if name else f"property at line {value}"] = int(value)
            case [_, "output", value, name]:
                system.names[int(value)] = name
            case [number, operator, sort, *rest] if sort in sorts:
                system.widths[int(number)] = sorts[sort]
                name = rest.pop() if rest and not NUMBER.fullmatch(rest[-1]) and operator not in CONSTANTS else ""
                system.lines[int(number)] = [operator, *rest]
                if name and operator in ("input", "state"):
                    system.names[int(number)] = name
            case _:
                raise ValueError(f"BTOR2 line is not understood: {line!r}")
    return system


class Unrolled:
    """The values of a system in cycles 0, 1, 2 ... as solver terms. `first`: cycle 0 is the initial one.

    With `start`, values of registers by name, cycle 0 is the one in which they have these.
    """

    def __init__(self, system: System, terms: TermManager, first: bool, start: dict[str, int] | None = None) -> None:
        self.system, self.terms, self.first, self.start = system, terms, first, start
        self.cycles: list[dict[int, Term]] = []

    def extend(self) -> None:
        """Adds one cycle."""
        before = self.cycles[-1] if self.cycles else None
        now: dict[int, Term] = {}
        for number, (operator, *args) in self.system.lines.items():
            now[number] = self._value(number, operator, args, now, before)
        self.cycles.append(now)

    def holds(self, cycle: int, number: int) -> Term:
        """The formula that a value of one bit is 1 in a cycle."""
        one = self.terms.mk_bv_one(self._sort(1))
        return self.terms.mk_term(Kind.EQUAL, [self.at(self.cycles[cycle], number), one])

    def at(self, now: dict[int, Term], number: int) -> Term:
        return now[number] if number > 0 else self.terms.mk_term(Kind.BV_NOT, [now[-number]])

    def _sort(self, width: int):
        return self.terms.mk_bv_sort(width)

    def _value(self, number: int, operator: str, args: list[str], now: dict, before: dict | None) -> Term:
        width = self.system.widths[number]
        if operator == "state" and before is not None and number in self.system.nexts:
            return self.at(before, self.system.nexts[number])
        if operator == "state" and before is None and self.start and number in self.system.nexts:
            return self.terms.mk_bv_value(self._sort(width), self.start[self.system.names[number]])
        if operator == "state" and before is None and self.first and number in self.system.inits:
            return self._initial(self.system.inits[number], now)
        if operator in ("input", "state"):  # a state without `next` is free in each cycle, as an input
            return self.terms.mk_const(self._sort(width), f"{number}@{len(self.cycles)}")
        return self._operation(width, operator, args, now)

    def _initial(self, value: int, now: dict[int, Term]) -> Term:
        operator, *args = self.system.lines[value]
        return self._operation(self.system.widths[value], operator, args, now)

    def _operation(self, width: int, operator: str, args: list[str], now: dict[int, Term]) -> Term:
        make, sort = self.terms.mk_term, self._sort(width)
        if operator in ("const", "constd", "consth"):
            return self.terms.mk_bv_value(sort, args[0], {"const": 2, "constd": 10, "consth": 16}[operator])
        if operator in ("zero", "one", "ones"):
            return getattr(self.terms, f"mk_bv_{operator}")(sort)
        if operator == "slice":
            return make(Kind.BV_EXTRACT, [self.at(now, int(args[0]))], [int(args[1]), int(args[2])])
        if operator in ("uext", "sext"):
            kind = Kind.BV_ZERO_EXTEND if operator == "uext" else Kind.BV_SIGN_EXTEND
            return make(kind, [self.at(now, int(args[0]))], [int(args[1])])
        values = [self.at(now, int(arg)) for arg in args]
        if operator == "ite":
            return make(Kind.ITE, [make(Kind.EQUAL, [values[0], self.terms.mk_bv_one(self._sort(1))]), *values[1:]])
        if operator == "implies":
            return make(Kind.BV_OR, [make(Kind.BV_NOT, values[:1]), values[1]])
        if operator in COMPARE:
            one, zero = self.terms.mk_bv_one(self._sort(1)), self.terms.mk_bv_zero(self._sort(1))
            return make(Kind.ITE, [make(COMPARE[operator], values), one, zero])
        if operator in UNARY or operator in BINARY:
            return make((UNARY | BINARY)[operator], values)
        raise ValueError(f"BTOR2 operator {operator!r} is not known; write_btor should not have written it")
