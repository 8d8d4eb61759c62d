"""A Kubernetes cluster that speaks the real API, with boards that run runners; for the demo, tests, benchmarks.

    request ─▶ control | api (fault, token) ─▶ reads, writes, watching ─▶ store ◀─▶ scheduler ─▶ fitting
                                                                         ▲  ▲
    kubelet ─▶ pod_worker ─▶ programs (runner_program ─▶ simulated GitHub)┘  └── garbage, node_controller

Everything that happens is a change in `store`; the parts learn of it there and call none of each other.
"""

from controller.simulators.cluster.programs import Behaviour, Container, Program, Sleeper
from controller.simulators.cluster.runner_program import RunnerProgram
from controller.simulators.cluster.simulator import ClusterSimulator
from controller.simulators.github.faults import Faults, Rule

__all__ = [
    "Behaviour",
    "ClusterSimulator",
    "Container",
    "Faults",
    "Program",
    "Rule",
    "RunnerProgram",
    "Sleeper",
]
