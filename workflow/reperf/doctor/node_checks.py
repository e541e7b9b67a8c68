"""Whether the nodes can work together: folder, clocks, environments, and what connects them."""

from collections.abc import Iterator
from functools import partial

from reperf.doctor.case import NOT_THERE, Case, Verdict, each, finding, same, usual
from reperf.doctor.diagnosis import AllReduce, Finding, Probe
from reperf.printed import count
from reperf.systems import load_systems

CLOCKS_APART_SECONDS = 1.0
FABRIC_SHARE = 0.5
"""The share of the fabric's rate that an all-reduce of large messages should reach."""


def answers(case: Case) -> Iterator[Finding]:
    """Every node that gets jobs answers, and there are enough of them for every run."""
    for visit in case.visits:
        if not visit.offered:
            yield finding("answer", (visit.node,), Verdict("warning", visit.trouble))
        elif visit.probe is None:
            advice = "runs will be sent there: repair it or take it out of the partition"
            yield finding("answer", (visit.node,), Verdict("error", visit.trouble, advice))
    if case.nodes:
        yield finding("answer", case.nodes, Verdict("ok", "answered"))
    offered = sum(visit.offered for visit in case.visits)
    if offered < case.nodes_wanted:
        what = f"{count(offered, 'node')} can be used, runs ask for {case.nodes_wanted}"
        nodes = tuple(visit.node for visit in case.visits)
        yield finding("answer", nodes, Verdict("error", what))


def work_folder(case: Case) -> Iterator[Finding]:
    """What the caller writes there, each node can read, and the other way round."""
    arrived = {visit.node for visit in case.visits if visit.note_arrived}
    good = []
    for node, probe in case.probes.items():
        trouble = probe.shared_trouble or (
            "" if node in arrived else "the caller cannot see what it writes"
        )
        if trouble:
            advice = "work in a folder that all nodes see at the same path"
            yield finding("work folder", (node,), Verdict("error", trouble, advice))
        else:
            good.append(node)
    if good:
        yield finding("work folder", tuple(good), Verdict("ok", "read and written"))


def clock(case: Case) -> Iterator[Finding]:
    """The nodes' clocks agree with this machine's, which looks at their files."""
    behind = {visit.node: visit.clock_offset for visit in case.visits if visit.probe}
    good = {}
    for node, by in behind.items():
        if abs(by) < CLOCKS_APART_SECONDS:
            good[node] = abs(by)
            continue
        what = f"{abs(by):.1f} s {'behind' if by > 0 else 'ahead of'} this machine's"
        advice = "set the clocks by NTP: Snakemake compares the times of files"
        yield finding("clock", (node,), Verdict("warning", what, advice))
    if good:
        what = f"within {max(good.values()):.2f} s, transfer included"
        yield finding("clock", tuple(good), Verdict("ok", what))


def environments(case: Case) -> Iterator[Finding]:
    """Each system's trainer starts everywhere, with the same packages."""
    for system, lock in case.built.items():
        check = f"environment of {system}"
        if lock is None:
            what = "not built, or built from another lock; the workflow builds it first"
            yield finding(check, case.nodes, Verdict("warning", what, "call the doctor again then"))
            continue
        most = usual(case, lambda probe, system=system: _installed(probe, system))
        judge = partial(_judge_environment, system=system, lock=lock, most=most)
        yield from each(case, check, judge)


def _judge_environment(probe: Probe, system: str, lock: str, most: set[str] | None) -> Verdict:
    state, installed = probe.environments[system], _installed(probe, system)
    advice = "it must lie in the shared folder, and so must its Python"
    if state.trouble:
        return Verdict("error", state.trouble, advice)
    if state.lock_sha256 != lock:
        what = f"built from the lock {state.lock_sha256[:12]}, elsewhere {lock[:12]}"
        return Verdict("error", what, advice)
    if installed != most:
        here, elsewhere = (
            ", ".join(sorted(names)) for names in (installed - most, most - installed)
        )
        what = f"{here or 'missing'} here, {elsewhere or 'missing'} elsewhere"
        return Verdict("error", what, advice)
    package = load_systems()[system].framework
    framework = f"{package} {state.packages.get(package, '')}".strip()
    number = count(len(state.packages), "package")
    return Verdict("ok", f"{framework}, Python {state.python}, {number}; its trainer starts")


def _installed(probe: Probe, system: str) -> set[str] | None:
    state = probe.environments[system]
    if state.trouble:
        return None
    return {f"python {state.python}", *(f"{name} {at}" for name, at in state.packages.items())}


def fabric(case: Case) -> Iterator[Finding]:
    """The ports of InfiniBand and RoCE adapters are up, and equally fast on all nodes."""
    return same(
        case, "InfiniBand", _ports, advice="the slowest link sets the speed of a run: see ibstat"
    )


def _ports(probe: Probe) -> str | None:
    rates = [f"{port.gigabits:g} Gb/s {port.link}" for port in probe.fabric if port.active]
    if probe.fabric and not rates:
        return "all ports down"
    return ", ".join(f"{rates.count(rate)} x {rate}" for rate in dict.fromkeys(rates)) or None


def all_reduce(case: Case) -> Iterator[Finding]:
    """Gradients can travel from every device to every other."""
    done, check = case.all_reduce, "all-reduce"
    if done.system is None:
        yield finding(check, case.nodes, Verdict(NOT_THERE, done.trouble))
    elif done.trouble:
        advice = "what the ranks printed is in logs/doctor/all-reduce.log"
        yield finding(check, done.nodes, Verdict("error", done.trouble, advice))
    for transfer in done.transfers:
        bandwidth = transfer.bus_bandwidth(done.world_size)
        what = (
            f"{transfer.bytes / 1e6:.3g} MB, {count(done.world_size, 'rank')} over {done.backend}"
        )
        speed = f"{transfer.seconds * 1e3:.3g} ms, {bandwidth / 1e9:.3g} GB/s"
        yield finding(check, done.nodes, Verdict("ok", f"{what}: {speed}"))
    if done.transfers:
        yield from _against_fabric(case, done)


def _against_fabric(case: Case, done: AllReduce) -> Iterator[Finding]:
    """What GPUs of several nodes reached, beside what the ports could carry."""
    ports = [[port for port in case.probes[node].fabric if port.active] for node in done.nodes]
    rate = min(sum(port.gigabits for port in own) for own in ports) * 1e9 / 8
    reached = max(transfer.bus_bandwidth(done.world_size) for transfer in done.transfers)
    if done.backend == "nccl" and len(done.nodes) > 1 and reached < FABRIC_SHARE * rate:
        what = f"{reached / 1e9:.3g} GB/s over ports of {rate / 1e9:.3g} GB/s"
        advice = "run with NCCL_DEBUG=INFO: does it use all ports, and GPUDirect?"
        yield finding("all-reduce", done.nodes, Verdict("warning", what, advice))
