# SPDX-License-Identifier: Apache-2.0
"""Slang, the second front end of the linter: it reads the same files by the same rules as IEEE 1800 states them.

What Verilator accepts and another tool refuses (two processes that drive one variable, say) is found here. In addition,
nothing but a flip-flop or a pin may be in front of a synchroniser (`reset_sync`): logic there can glitch.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pyslang import analysis, ast, driver

import rtl

STANDARD = "1800-2017"
# What a name may be built of in front of a synchroniser.
PLACES = {
    ast.ExpressionKind.ElementSelect: "value",
    ast.ExpressionKind.MemberAccess: "value",
    ast.ExpressionKind.RangeSelect: "value",
    ast.ExpressionKind.Conversion: "operand",
    ast.ExpressionKind.UnaryOp: "operand",  # of one bit: an inverter
}
Parameters = dict[str, int]


def read(tops: Sequence[str], parameters: Parameters, wrappers: Sequence[Path] = ()) -> driver.Driver:
    """A driver of slang that has parsed these tops and all that they need."""
    found = driver.Driver()
    found.addStandardArgs()
    folders = [arg for folder in rtl.FOLDERS if folder.is_dir() for arg in ("-y", folder)]
    words = ["slang", "--std", STANDARD, "-Werror", "--libext", ".sv", *folders, *rtl.include_options()]
    words += [word for top in tops for word in ("--top", top)]
    words += [f"-G{name}={value}" for name, value in parameters.items()]
    words += [*rtl.packages(), *(path for top in tops for path in rtl.module(top)), *wrappers]
    if wrappers:
        words += ["-Wno-unconnected-input-port", "-Wno-unconnected-output-port", "--ignore-unknown-modules"]
    if not (found.parseCommandLine(" ".join(map(str, words))) and found.processOptions()):
        raise ValueError(f"Slang refuses its options for {tops}")
    found.parseAllSources()
    return found


def modules(top: str, parameters: Parameters) -> set[str]:
    """The names of the modules that a top holds with these parameters; those of vendors, too."""
    found = read([top], parameters)
    compilation = found.createCompilation()
    return {instance.definition.name for instance in instances(compilation.getRoot())}


def check(tops: Sequence[str], parameters: Parameters, wrappers: Sequence[Path] = ()) -> list[str]:
    """The complaints about these tops, elaborated together; `wrappers` are files of benches.

    Wrappers may leave ports open, and use modules that are written when their bench is built. Slang itself writes its
    complaints to the standard error output; the entry here names the tops.
    """
    found = read(tops, parameters, wrappers)
    compilation = found.createCompilation()
    found.reportCompilation(compilation, True)
    drivers = found.runAnalysis(compilation)
    complaints = [] if found.reportDiagnostics(True) else [f"slang: {', '.join(tops)} {parameters or ''}"]
    return [*complaints, *sorted(set(synchronisers(compilation, drivers)))]


def synchronisers(compilation: ast.Compilation, drivers: analysis.AnalysisManager) -> Iterator[str]:
    """Synchronisers with logic in front of them, by module and instance."""
    for instance in instances(compilation.getRoot()):
        if instance.definition.name != "reset_sync" or not (pins := list(instance.portConnections)):
            continue  # or a top of its own
        expression = next(pin.expression for pin in pins if pin.port.name == "d")
        while (inner := PLACES.get(expression.kind)) is not None:
            expression = getattr(expression, inner)
        named = isinstance(expression, ast.NamedValueExpression)
        if not named or any(is_logic(entry) for entry in drivers.getDrivers(expression.symbol)):
            module = instance.parentScope.containingInstance.definition.name
            yield f"{module}.{instance.name}: logic in front of a synchroniser, which can take a glitch of it"


def instances(scope: ast.Scope) -> Iterator[ast.InstanceSymbol]:
    """All instances of modules in and below a scope."""
    for member in scope:
        if isinstance(member, ast.InstanceSymbol):
            yield member
            yield from instances(member.body)
        elif isinstance(member, (ast.GenerateBlockSymbol, ast.GenerateBlockArraySymbol, ast.InstanceArraySymbol)):
            yield from instances(member)


def is_logic(entry: analysis.ValueDriver) -> bool:
    """Whether a variable is set by an assignment that is neither a flip-flop's nor that of a port."""
    if entry.kind == analysis.DriverKind.Continuous:
        return not entry.isInputPort and entry.containingSymbol.kind != ast.SymbolKind.Instance
    return entry.source in (analysis.DriverSource.AlwaysComb, analysis.DriverSource.Always)
