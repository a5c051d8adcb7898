"""What a kernel in the sandbox can see, reach and hold: asked from inside, through real kernels."""

import json
import os
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_notebook

from autograder.course import GradingOptions, Trouble
from autograder.grading.judging import public_bytes
from autograder.runner import sandbox
from autograder.runner.cgroups import MEMORY, PROCESSES, where_groups_can_be
from autograder.runner.kernels import remove, the_nursery
from autograder.runner.notebook import NotebookRun, RunLimits, run_notebook
from autograder.runner.sandbox import Limits
from autograder.student.cases import CaseSet

TOPIC = "01_self_attention"
SMALL = Limits(memory=2**30, disk=2**25, file=2**24, processes=40)
Ask = Callable[..., object]


def run_in_sandbox(
    *cells: str, files: dict[str, bytes] | None = None, limits: RunLimits | None = None
) -> NotebookRun:
    notebook = new_notebook(cells=[new_code_cell(textwrap.dedent(cell)) for cell in cells])
    cases = CaseSet.from_bytes(public_bytes(TOPIC))
    limits = limits or RunLimits(cell=30, kernel=SMALL)
    return run_notebook(notebook, cases, public_bytes(TOPIC), limits, files)


def said_by(run: NotebookRun, cell: int = -1) -> str:
    return "".join(output.get("text", "") for output in run.notebook.cells[cell].outputs)


def ask(code: str, files: dict[str, bytes] | None = None) -> object:
    """What the variable `answer` is at the end of the code, which runs in a kernel."""
    code = textwrap.dedent(code) + "\nimport json; print(json.dumps(answer))"
    run = run_in_sandbox(code, files=files)
    said = said_by(run)
    assert said, run.notebook.cells[0].outputs
    return json.loads(said.splitlines()[-1])


# ---- what is there


def test_nothing_of_the_graders_is_there() -> None:
    places = [ROOT, ROOT / "solutions", ROOT / "source", Path.home() / ".ssh", Path("/etc/passwd")]
    code = f"import os; answer = [os.path.exists(path) for path in {[str(p) for p in places[1:]]}]"
    assert ask(code) == [False] * 4
    assert ask("import os; answer = sorted(os.listdir('/proc'))") == []


def test_no_reference_can_be_imported() -> None:
    code = """
import importlib
answer = []
for name in ("solutions", "autograder", "autograder.exercises"):
    try:
        importlib.import_module(name)
        answer.append(name)
    except ImportError:
        pass
"""
    assert ask(code) == []


def test_no_reference_is_in_the_memory_of_a_kernel() -> None:
    names = ask("import sys; answer = sorted(sys.modules)")
    assert isinstance(names, list)
    assert "autograder_student" in names
    assert not [name for name in names if name.startswith(("solutions", "autograder."))]


def test_the_environment_says_nothing_of_the_graders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    names = ask("import os; answer = sorted(os.environ)")
    assert isinstance(names, list)
    assert "SECRET_TOKEN" not in names
    assert not [name for name in names if name.startswith(("SSH", "AWS", "SECRET"))]


def test_there_is_no_network() -> None:
    code = """
import socket
answer = []
for place in (("127.0.0.1", 22), ("1.1.1.1", 53)):
    try:
        socket.create_connection(place, timeout=1)
        answer.append(place)
    except OSError:
        pass
"""
    assert ask(code) == []


def test_nothing_but_its_own_place_can_be_written() -> None:
    code = """
import os, sys
answer = []
places = ["/", "/usr", "/etc", "/grader", "/var/tmp", os.path.dirname(os.__file__), sys.prefix]
for place in places:
    try:
        with open(os.path.join(place, "left-here"), "w") as file:
            file.write("x")
        answer.append(place)
    except OSError:
        pass
open("mine.txt", "w").write("x")
"""
    assert ask(code) == []


def test_a_kernel_sees_no_other() -> None:
    """Neither its processes nor its folder, whichever of them began first."""
    code = """
import os
here = os.path.dirname(os.getcwd())
answer = [os.getpid(), os.listdir(os.path.dirname(here)) == [os.path.basename(here)]]
"""
    with the_nursery().box({"secret.txt": b"of another"}):
        assert ask(code) == [1, True]


def test_what_is_hidden_cannot_be_uncovered() -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
here = os.path.dirname(os.getcwd())
boxes = os.path.dirname(here)

def seen():
    return [os.listdir(boxes) != [os.path.basename(here)], os.listdir("/proc") != []]

answer = []
for flags in (0, 2, 8):  # plain, MNT_DETACH, UMOUNT_NOFOLLOW
    answer += [libc.umount2(boxes.encode(), flags), libc.umount2(b"/proc", flags)]
answer += seen()
if os.fork() == 0:  # in a user namespace of its own it has all rights, but over nothing of ours
    libc.unshare(0x10000000 | 0x00020000)
    libc.umount2(boxes.encode(), 2), libc.umount2(b"/proc", 2)
    libc.mount(b"proc", b"/proc", b"proc", 0, None)
    os._exit(any(seen()))
answer += [os.waitstatus_to_exitcode(os.wait()[1])]
"""
    assert ask(code) == [-1] * 6 + [False, False, 0]


def test_files_beside_the_notebook_are_copies_and_shadow_nothing() -> None:
    code = """
import os, torch, helper
answer = [torch.__name__, "site-packages" in torch.__file__, helper.value, sorted(os.listdir())]
"""
    files = {"torch.py": b"raise SystemExit", "helper.py": b"value = 7\n"}
    answer = ask(code, files)
    assert isinstance(answer, list)
    assert answer[:3] == ["torch", True, 7]
    assert set(files) <= set(answer[3])


def test_pictures_and_random_numbers_are_as_in_any_kernel() -> None:
    cells = [
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "import torch, random\nprint(torch.rand(1).item(), random.random())",
    ]
    drawn = RunLimits(kernel=SMALL, figures=True)
    first, second = (run_in_sandbox(*cells, limits=drawn) for _ in range(2))
    assert "image/png" in first.notebook.cells[0].outputs[0].data
    assert said_by(first) != said_by(second), "each kernel has chance of its own"


def test_cells_mean_what_they_mean_in_any_kernel() -> None:
    """Magics, what awaits, and cells that change how the cells after them, or in them, are read."""
    cells = (
        "import asyncio\nprint(await asyncio.sleep(0, 'slept'))",
        "await asyncio.sleep(0, 'the value of a cell')",
        "%%capture said\nprint('kept')",
        "print(said.stdout)\n%who_ls\n!echo from a shell",
        "shell = get_ipython()\ntype(shell).__name__, 'IPKernelApp' in shell.config",
        """
        def read(lines):
            return [line.replace("how", "'otherwise'") for line in lines]
        how = "as before"
        _ = shell.run_cell("print(how)")
        shell.input_transformers_cleanup.append(read)
        _ = shell.run_cell("print(how)")
        """,
        "print(how)",
        "shell.input_transformers_cleanup.remove(read)\nprint(how)",
        "print(how)",
        "import logging\nlogging.warning('once')\nlogging.getLogger('a').info('never')",
        "%config InlineBackend.print_figure_kwargs",
        "type(shell).__module__, shell.starting_dir == _dh[0] == %pwd",
        "%history -l 2",
        "shell.history_manager.get_tail(1, include_latest=True)[-1][2]",
        """
        import os, sys, getpass
        os.mkdir("below")
        with open("below/helper_of_mine.py", "w") as file:
            file.write("value = 7")
        os.chdir("below")
        import helper_of_mine
        print(helper_of_mine.value, os.path.basename(sys.argv[0]))
        %cd -q ..
        """,
        "os.path.exists('below'), bool(getpass.getuser()), 'JPY_PARENT_PID' in os.environ",
        "os.environ.get('PWD', os.getcwd()) == os.getcwd()",
        "import torch\ntorch.set_num_interop_threads(1)\ntorch.get_num_interop_threads()",
        "print(1\n",
    )
    limits = RunLimits(cell=30, kernel=SMALL)
    warm, plain = (
        run_in_sandbox(*cells, limits=given) for given in (limits, replace(limits, kernel=None))
    )
    assert said_by(plain, 5) == "as before\notherwise\n"
    assert [said_by(plain, at) for at in (6, 7, 8)] == ["otherwise\n", "otherwise\n", "as before\n"]
    for ours, theirs in zip(warm.notebook.cells, plain.notebook.cells, strict=True):
        assert ours.outputs == theirs.outputs


def test_many_large_pictures_are_drawn_by_one_kernel() -> None:
    """They are sent by threads, through descriptors that nothing else may close."""
    draw = """
    import gc, torch
    import matplotlib.pyplot as plt
    fig, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained")
    for ax in axes:
        fig.colorbar(ax.imshow(torch.rand(40, 40)), ax=ax)
        ax.set(title="$x^2$", xlabel="a", ylabel="b")
    plt.show()
    gc.collect()
    """
    run = run_in_sandbox(*[draw] * 12, limits=RunLimits(cell=30, kernel=SMALL, figures=True))
    assert run.troubles == []
    assert all("image/png" in cell.outputs[0].data for cell in run.notebook.cells)


def test_output_in_parts_is_one_and_what_is_updated_is_found() -> None:
    first = """
    import sys, time
    for number in range(3):
        print(number, flush=True)
        time.sleep(0.4)
    print("e", file=sys.stderr, flush=True)
    time.sleep(0.4)
    handle = display("x", display_id=True)
    """
    run = run_in_sandbox(first, "handle.update('y')")
    texts = [
        output.get("text") or output.data["text/plain"] for output in run.notebook.cells[0].outputs
    ]
    assert texts == ["0\n1\n2\n", "e\n", "'y'"]


def test_a_process_by_an_odd_name_does_not_blind_the_watch() -> None:
    code = r"""
    import ctypes, os, time
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(15, b"x\rRssAnon:", 0, 0, 0)
        os._exit(0)
    ctypes.CDLL(None).prctl(15, b"\xff\rNSpid:1 x", 0, 0, 0)
    time.sleep(1)
    """
    run = run_in_sandbox(code, "print('on')")
    assert run.troubles == []
    assert said_by(run) == "on\n"


# ---- what it can hold


def test_too_much_memory_is_an_error_and_nothing_worse() -> None:
    run = run_in_sandbox("x = bytearray(3 * 2**30)", "print('still here')")
    assert run.notebook.cells[0].outputs[0].ename == "MemoryError"
    assert said_by(run) == "still here\n"


def test_memory_is_counted_over_all_processes() -> None:
    code = """
    import os, time
    for _ in range(6):
        if os.fork() == 0:
            held = bytearray(b"x" * (300 * 2**20))
            time.sleep(60)
    time.sleep(20)
    """
    run = run_in_sandbox(code, "print('on')")
    assert run.troubles == ["the kernel ended in cell 1 (more than 1.0 GiB of memory)"]
    assert said_by(run) == "on\n"


def test_what_all_kernels_are_born_with_is_counted_for_no_process() -> None:
    """Else a few workers of a data loader would hold too much."""
    code = """
import os, time
children = []
for _ in range(12):
    child = os.fork()
    if child == 0:
        time.sleep(3)
        os._exit(0)
    children.append(child)
answer = [os.waitpid(child, 0)[1] for child in children]
"""
    assert ask(code) == [0] * 12


def test_children_that_nobody_waits_for_are_counted() -> None:
    code = """
    import os, time
    try:
        for _ in range(1000):
            if os.fork() == 0:
                os._exit(0)
    except OSError:
        pass  # the wall was reached before the watch looked
    time.sleep(20)
    """
    run = run_in_sandbox(code, "print('on')")
    assert run.troubles == ["the kernel ended in cell 1 (more than 40 processes)"]


def test_a_fork_bomb_ends_itself_alone() -> None:
    code = """
    import os
    while True:
        try:
            os.fork()
        except OSError:
            pass
    """
    run = run_in_sandbox(code, "print('on')")
    assert run.troubles
    assert run.troubles[0].startswith("the kernel ended in cell 1")
    assert said_by(run) == "on\n"


def test_a_disk_that_is_full_is_an_error_of_the_notebook() -> None:
    code = """
    for number in range(8):
        with open(f"file-{number}", "wb") as file:
            file.write(b"x" * (15 * 2**20))
    """
    run = run_in_sandbox(code, "print('on')")
    assert run.notebook.cells[0].outputs[0].ename == "OSError"
    assert said_by(run) == "on\n"


def test_all_that_a_kernel_may_write_is_one_disk() -> None:
    code = """
import os, tempfile
answer = []
for number, place in enumerate([".", ".", tempfile.gettempdir(), "/dev/shm"]):
    try:
        with open(os.path.join(place, f"file-{number}"), "wb") as file:
            file.write(b"x" * (12 * 2**20))
        answer.append(True)
    except OSError:
        answer.append(False)
"""
    assert ask(code) == [True, True, False, False]


def test_a_flood_of_output_is_cut_off() -> None:
    limits = RunLimits(cell=30, output=10_000, kernel=SMALL)
    run = run_in_sandbox(
        "for _ in range(2000):\n    print('x' * 1000)", "print('on')", limits=limits
    )
    assert len(said_by(run, 0)) < 30_000
    assert "left out" in said_by(run, 0)
    assert said_by(run) == "on\n"


def test_what_a_cell_left_running_ends_with_the_kernel() -> None:
    code = """
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    """
    run_in_sandbox(code)
    nursery = the_nursery()
    assert all(started.ended.is_set() for started in nursery.kernels.values())


def test_a_notebook_has_an_end() -> None:
    limits = RunLimits(cell=30, notebook=4, kernel=SMALL)
    run = run_in_sandbox("import time", *["time.sleep(3)"] * 4, limits=limits)
    assert "stopped after 4 s" in run.troubles[-1]


def test_folders_in_folders_without_an_end_are_removed(tmp_path: Path) -> None:
    place = tmp_path / "box"
    place.mkdir()
    here = os.open(place, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    remove(place)
    assert not place.exists()


# ---- what is not the notebook's fault


def test_a_nursery_that_ends_costs_no_exercise() -> None:
    """As where the machine runs out of memory: the notebook is run again."""
    killed: list[int] = []

    def kill_the_nursery() -> None:
        time.sleep(4)
        killed.append(the_nursery().process.pid)
        the_nursery().process.kill()

    the_nursery().wait_until_warm()
    killer = threading.Thread(target=kill_the_nursery)
    killer.start()
    try:
        run = run_in_sandbox("import time", "time.sleep(6)", "print('on')")
    finally:
        killer.join()
    assert killed
    assert run.troubles == []
    assert said_by(run) == "on\n"
    assert the_nursery().process.pid not in killed


class Walled(Limits):
    wall = 40


def test_a_kernel_has_a_wall_around_its_processes() -> None:
    """Its own limit on them counts nothing for root; a control group's does."""
    if where_groups_can_be(PROCESSES) is None:
        pytest.skip("no control groups can be made here; RLIMIT_NPROC holds for a plain user")
    code = """
    import os, time
    children = 0
    try:
        while True:
            child = os.fork()
            if child == 0:
                time.sleep(9)
                os._exit(0)
            children += 1
    except BlockingIOError:
        print(children)
    """
    limits = Walled(**{**asdict(SMALL), "processes": 200})  # which the watch would let be
    run = run_in_sandbox(code, limits=RunLimits(cell=30, kernel=limits))
    assert 0 < int(said_by(run)) <= limits.wall
    walls = [started.walls for started in the_nursery().kernels.values() if started.walls]
    folders = [folder for wall in walls for folder in wall.folders]
    assert folders
    assert not [folder for folder in folders if folder.exists()]


def test_memory_that_no_process_maps_has_a_wall_too() -> None:
    if where_groups_can_be(MEMORY) is None:
        pytest.skip("no control groups can be made here; the README says what that leaves open")
    code = """
    import os
    held = []
    for number in range(200):
        held.append(os.memfd_create(str(number)))
        for _ in range(12):
            os.write(held[-1], bytes(2**20))
    print("all of it")
    """
    run = run_in_sandbox(code, "print('on')")
    assert run.troubles == ["the kernel ended in cell 1 (more than 1.0 GiB of memory)"]
    assert said_by(run) == "on\n"


def test_what_children_that_begin_anew_hold_counts_in_full() -> None:
    """A fork shares with the process that it came from; what is started anew shares nothing."""
    hold = "import time; held = bytearray(b'1') * (90 * 2**20); time.sleep(20)"
    code = f"""
    import subprocess, sys, time
    children = [subprocess.Popen([sys.executable, "-S", "-c", {hold!r}]) for _ in range(14)]
    time.sleep(15)
    print("all of it")
    """
    run = run_in_sandbox(code)
    assert run.troubles == ["the kernel ended in cell 1 (more than 1.0 GiB of memory)"]


def test_where_a_kernel_is_connected_it_writes_nothing() -> None:
    """That folder lies on the machine's disk, beyond the limit on what a kernel writes."""
    code = """
    import os
    place = os.path.join(os.path.dirname(os.getcwd()), "connection")
    answer = [len(os.listdir(place))]
    for name in ("more", "kernel.json"):
        try:
            open(os.path.join(place, name), "a").close()
            answer.append("written")
        except OSError as error:
            answer.append(error.strerror)
    """
    assert ask(code) == [6, "Read-only file system", "Read-only file system"]


def test_settings_of_ipython_beside_a_notebook_are_no_settings() -> None:
    files = {"ipython_kernel_config.py": b"open('taken', 'w')"}
    assert ask("import os; answer = os.path.exists('taken')", files) is False


def test_a_kernel_has_a_keyring_of_its_own() -> None:
    numbers = {"x86_64": 250, "aarch64": 219}
    number = numbers.get(os.uname().machine)
    if number is None:
        pytest.skip("the number of this call is not known here")
    code = f"""
    import ctypes
    answer = ctypes.CDLL(None).syscall({number}, 0, -3, 0)  # the session's
    """
    first, second = ask(code), ask(code)
    assert first != second


def test_a_shell_that_forks_without_end_leaves_room_for_others() -> None:
    code = """
    %%bash
    bomb() { bomb | bomb & }; bomb
    sleep 20
    """
    seen: list[int] = []
    stop = threading.Event()

    def count() -> None:
        while not stop.wait(0.05):
            seen.append(sum(entry.isdigit() for entry in os.listdir("/proc")))

    counter = threading.Thread(target=count)
    counter.start()
    try:
        run = run_in_sandbox(textwrap.dedent(code).strip(), "print('on')")
    finally:
        stop.set()
        counter.join()
    assert said_by(run) == "on\n"
    assert max(seen) < 1000


# ---- where there is none


def test_limits_are_set_in_the_configuration() -> None:
    options = GradingOptions(memory_limit=2.0, process_limit=9, notebook_timeout=70)
    limits = RunLimits.of(options)
    assert limits.kernel is not None
    assert (limits.kernel.memory, limits.kernel.processes, limits.notebook) == (2 * 2**30, 9, 70)
    assert RunLimits.of(GradingOptions(sandbox=False)).kernel is None


def test_without_bubblewrap_grading_refuses_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    sandbox.why_unavailable.cache_clear()
    try:
        with pytest.raises(Trouble, match=r"bubblewrap, which is missing\. Install it"):
            sandbox.require_sandbox()
    finally:
        monkeypatch.undo()
        sandbox.why_unavailable.cache_clear()
