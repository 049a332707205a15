# SPDX-License-Identifier: Apache-2.0
"""What a proof of `make formal` is: a module, its parameters, and the faults that its properties must notice."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mutant:
    """A fault: one piece of the module's text, found exactly once, becomes another."""

    old: str
    new: str
    breaks: str  # the property
    file: str = ""  # the module whose text it is, if not the proof's own
    after: str = ""  # searched from the end of the run that reaches this cover


@dataclass(frozen=True)
class Proof:
    """One module at one set of parameters, with the properties of `<props or top>_props.sv`.

    `depth` is the k of k-induction. With `bounded`, all runs of that many cycles are checked and no more, which is said
    to be enough where it is used.
    """

    top: str
    params: dict[str, int]
    depth: int = 1
    bounded: bool = False
    cycles: int = 12  # covers are reached and mutants are caught within as many
    # Of how many cycles one question asks: it pays where such a question is little harder than one about a cycle.
    window: int = 1
    apart: bool = False  # in the induction each property has a solver of its own: faster where each is hard
    mutants: tuple[Mutant, ...] = ()
    props: str = ""
    # Of a cover that lies deep: the one from the end of whose run it is searched.
    after: dict[str, str] = field(default_factory=dict)
    free: tuple[str, ...] = ()  # modules for which their stand-ins are read, with outputs that may be anything

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        values = "".join(f"-{key}{value}" for key, value in self.params.items())
        return f"{self.props or self.top}{values}"

    @property
    def starts(self) -> set[str]:
        """The covers from which a search goes on."""
        return {*self.after.values(), *(mutant.after for mutant in self.mutants)}
