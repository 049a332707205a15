# SPDX-License-Identifier: Apache-2.0
"""`make formal`: runs the proofs listed in `proofs/`, and shows that each proof can fail.

    python rtl/formal/check.py [name ...]     all, or those whose names contain a word
    python rtl/formal/check.py --changed      those that `proved.json` does not have (record.py)

Why not SymbiYosys: Yosys and Bitwuzla are packages of requirements.txt, SymbiYosys and its solvers are not, and it
does not plant faults.

Exits with 1 and prints the trace that breaks a property if a proof, cover or planted fault does not behave as required.
"""

import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "tb" / "lib"), str(REPO / "rtl" / "syn")]

import btor  # noqa: E402
import engine  # noqa: E402
import model  # noqa: E402
import record  # noqa: E402
import yosys  # noqa: E402
from proof import Mutant, Proof  # noqa: E402
from proofs import PROOFS  # noqa: E402

import rtl  # noqa: E402


@dataclass
class Finding:
    """One check of one proof: the question and the result."""

    what: str
    good: bool
    detail: str = ""


def prove(proof: Proof, built: model.Model) -> Finding:
    """All assertions together, from reset and by induction."""
    if not built.asserts.bads:
        return Finding("proof", False, "there are no assertions; were they bound?")
    broken = engine.base(built.asserts, proof.depth, proof.window)
    if broken:
        return Finding("proof", False, f"{broken.reached} breaks after reset:\n{broken}")
    if proof.bounded:
        return Finding(f"all runs of {proof.depth} cycles", True)
    broken = engine.step(built.asserts, proof.depth, proof.apart)
    if broken:
        return Finding("proof", False, f"{broken.reached} is not inductive at depth {proof.depth}:\n{broken}")
    return Finding(f"induction, k = {proof.depth}", True)


def short(name: str) -> str:
    """A property's name without the instance that it is in."""
    return name.split(".")[-1]


class Covers:
    """The runs that reach the covers of a model, each found once.

    `like`: those of a model that differs little; what led there is tried here before a search, which takes far longer.
    """

    def __init__(self, proof: Proof, built: model.Model, like: "Covers | None" = None) -> None:
        self.proof, self.built, self.like = proof, built, like
        self.runs: dict[str, engine.Trace | None] = {}
        self.names = {short(name): name for name in built.covers.bads}

    def reach(self, name: str) -> engine.Trace | None:
        """The run to a cover from the start, or from the end of the run to the one that it is listed after."""
        if name not in self.runs:
            found, start = True, None
            if before := self.proof.after.get(name):
                found = self.reach(before)
                start = found and found.state
            # At the point where another run continues, all registers must be known.
            system = self.built.whole if self.proof.after else self.built.covers
            self.runs[name] = self._run(system, name, start) if found else None
        return self.runs[name]

    def _run(self, system: btor.System, name: str, start: dict[str, int] | None) -> engine.Trace | None:
        if self.like and (run := self.like.reach(name)):
            followed = engine.follow(system, run, self.names[name], start)
            if followed:
                return followed
        found = engine.search(system, self.proof.cycles, self.names[name], start, self.proof.window)
        return found and found.release(goes_on=name in self.proof.starts)


def cover(proof: Proof, covers: Covers) -> list[Finding]:
    """Each cover must be reached, or the proof says nothing about where it matters."""
    found = []
    for name in covers.names:
        reached = covers.reach(name) is not None
        found.append(Finding(name, reached, "" if reached else f"not reached in {proof.cycles} cycles"))
    return found


def mutate(proof: Proof, mutant: Mutant, sound: Covers) -> Finding:
    """A planted fault must break its property. `sound`: the covers of the module without it."""
    what = f"mutant {mutant.new!r}"
    (original,) = rtl.module(mutant.file or proof.top)
    text = original.read_text()
    if text.count(mutant.old) != 1:
        return Finding(what, False, f"{original}: {mutant.old!r} stands there {text.count(mutant.old)} times, not once")
    with tempfile.TemporaryDirectory() as folder:
        changed = Path(folder, original.name)
        changed.write_text(text.replace(mutant.old, mutant.new))
        built = model.build(proof.top, proof.params, proof.props or proof.top, proof.free, changed)
    names = [name for name in built.asserts.bads if short(name) == mutant.breaks]
    if len(names) != 1:
        return Finding(what, False, f"there is no property {mutant.breaks}; there are {', '.join(built.asserts.bads)}")
    start = None
    if mutant.after:
        reached = Covers(proof, built, like=sound).reach(mutant.after)
        if reached is None:
            return Finding(what, False, f"{mutant.after} is not reached")
        start = reached.state
    broken = engine.search(built.asserts, max(proof.cycles, proof.depth), names[0], start, proof.window)
    return Finding(what, broken is not None, "" if broken else f"{mutant.breaks} holds all the same")


def check(proof: Proof) -> tuple[Proof, list[Finding], float]:
    """Everything about one proof, with the seconds it took."""
    started = time.monotonic()
    try:
        built = model.build(proof.top, proof.params, proof.props or proof.top, proof.free)
        covers = Covers(proof, built)
        findings = [prove(proof, built), *cover(proof, covers)]
        findings += (mutate(proof, mutant, covers) for mutant in proof.mutants)
    except yosys.YosysError as error:
        findings = [Finding("reading", False, str(error))]
    return proof, findings, time.monotonic() - started


def main(words: list[str]) -> int:
    changed, words = "--changed" in words, [word for word in words if word != "--changed"]
    chosen = [proof for proof in PROOFS if not words or any(word in proof.name for word in words)]
    chosen.sort(key=lambda proof: -max(proof.depth, proof.cycles))  # the deepest take longest: no core waits for them
    if not chosen:
        print(f"formal: no proof is named {' or '.join(words)}; there are:", *(p.name for p in PROOFS), sep="\n  ")
        return 2
    rtl.generate()
    prints, before = {proof.name: record.fingerprint(proof) for proof in PROOFS}, record.RECORD.passed()
    left = [proof for proof in chosen if changed and before.get(proof.name) == prints[proof.name]]
    chosen = [proof for proof in chosen if proof not in left]
    planted = sum(len(proof.mutants) for proof in chosen)
    failed, proved = 0, {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for proof, findings, seconds in pool.map(check, chosen):
            verdict = "proved" if all(finding.good for finding in findings) else "FAILED"
            covers = sum(finding.what.startswith("c_") for finding in findings)
            about = f"{findings[0].what}; {covers} covers, {len(proof.mutants)} mutants"
            print(f"{proof.name:32} {verdict}  {seconds:6.1f} s  {about}", flush=True)
            if verdict == "proved":
                proved[proof.name] = prints[proof.name]
            for finding in findings:
                if not finding.good:
                    failed += 1
                    print(f"  {finding.what}: {finding.detail}")
    record.RECORD.add(proved, prints)
    recorded = f" and {len(left)} in {record.RECORD.path.relative_to(REPO)}" if left else ""
    print(f"formal: {len(chosen)} proofs{recorded}, {planted} planted faults, {failed} complaints")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
