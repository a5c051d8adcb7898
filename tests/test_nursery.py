"""The process that forks kernels: how long it lives, and how it ends."""

import resource
import threading
from pathlib import Path

from autograder.runner.kernels import Nursery


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_it_outlives_the_thread_that_asked_for_it_and_ends_in_order() -> None:
    made: list[Nursery] = []
    asking = threading.Thread(target=lambda: made.append(Nursery()))
    asking.start()
    asking.join()
    (nursery,) = made
    nursery.wait_until_warm()
    assert nursery.process.poll() is None
    children = Path(f"/proc/{nursery.process.pid}/task/{nursery.process.pid}/children")
    (pid,) = children.read_text().split()
    before = cpu_of_children()
    nursery.close()
    assert nursery.process.returncode == 0
    assert cpu_of_children() - before > 0.5  # it has imported torch: what it took is known
    assert not Path(f"/proc/{pid}").exists()
    assert not nursery.folder.exists()
