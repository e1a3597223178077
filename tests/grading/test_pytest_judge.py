"""The judge of pytest tests: what it reports, how it runs programs, and what it lets into its own process."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from judging import judging

import t1x.grading
from t1x.grading.pytest_judge import read_record
from t1x.grading.report import VerifierReport
from t1x.sandbox.local import BubblewrapSandbox, ProcessSandbox
from t1x.sandbox.protocol import ExecResult
from t1x.tasks.task import Task, TaskFile

TASK = Task("judged", "", (TaskFile("in.txt", b"in\n"),), (), (), verifier="pytest", verifier_timeout=100.0)


@pytest.fixture(params=[BubblewrapSandbox, ProcessSandbox])
def judge(request, root):
    return judging_files(request.param, root)


@pytest.fixture
def confining(root):
    return judging_files(BubblewrapSandbox, root)


def judging_files(kind, root, **how: bool):
    """Runs the agent's command, then test files (name -> text)."""
    judge = judging(kind, root, **how)

    def run(command: str = ":", /, task: Task = TASK, **files: str) -> VerifierReport:
        tests = tuple(TaskFile(f"{name}.py", text.encode()) for name, text in files.items())
        return judge(replace(task, tests=tests), command)

    return run


def test_one_entry_a_test_and_a_case(judge):
    report = judge(
        "echo made >out.txt",
        test_a="""
import pytest
from helper import WANTED

@pytest.fixture
def breaking():
    yield
    raise RuntimeError("after")

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("text", ["a", "b c"])
def test_case(n, text): assert n == 1

class TestClass:
    def test_method(self): assert open("out.txt").read() == WANTED

def test_torn_down(breaking): pass
def test_without_fixture(nothing_of_that_name): pass
@pytest.mark.skip
def test_skipped(): pass
@pytest.mark.xfail
def test_expected_to_fail(): assert False
@pytest.mark.xfail
def test_passes_unexpectedly(): pass
def test_of_conftest(shared): assert shared == 7
def test_subtests(subtests):
    for n in range(2):
        with subtests.test(n=n):
            assert n == 0
""",
        test_b="def test_case(tmp_path): assert list(tmp_path.iterdir()) == []",
        helper='WANTED = "made\\n"\n\ndef test_no_test(): assert False',
        conftest="import pytest\n\n@pytest.fixture\ndef shared(): return 7",
    )
    assert report.cause is None, report.detail
    assert dict(report.assertions) == {
        "test_a.py::test_case[a-1]": True,
        "test_a.py::test_case[a-2]": False,
        "test_a.py::test_case[b c-1]": True,
        "test_a.py::test_case[b c-2]": False,
        "test_a.py::TestClass::test_method": True,
        "test_a.py::test_torn_down": False,
        "test_a.py::test_without_fixture": False,
        "test_a.py::test_skipped": False,
        "test_a.py::test_expected_to_fail": False,
        "test_a.py::test_passes_unexpectedly": False,
        "test_a.py::test_of_conftest": True,
        "test_a.py::test_subtests": False,
        "test_b.py::test_case": True,
    }


STARTING = r"""
import asyncio, os, pty, subprocess, sys, threading
import pytest

SEES = "ls -A /tests /logs /opt/t1x; cat /tests/secret.py; echo level $LEVEL >&2; pwd"
BLIND = "/logs:\n\n/opt/t1x:\n\n/tests:\n/app\n"

def test_run():
    ran = subprocess.run(["/bin/sh", "-c", SEES], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode, ran.args) == (BLIND, 0, ["/bin/sh", "-c", SEES])
    assert ran.stderr.endswith("level 3\n")

def test_shell(): assert subprocess.check_output(SEES, shell=True, text=True, stderr=-3) == BLIND
def test_open_descriptors(): assert subprocess.check_output(["/bin/sh", "-c", SEES], text=True, close_fds=False) == BLIND
def test_confined_already(): assert subprocess.check_output(["/opt/t1x/candidate", "/bin/sh", "-c", SEES], text=True) == BLIND
def test_other_shell(): assert subprocess.getoutput("exec 2>&1; echo $0") == "/bin/sh"
def test_given_shell(): assert subprocess.check_output("echo $0", shell=True, executable="/bin/bash") == b"/bin/bash\n"
def test_getoutput(): assert subprocess.getoutput(f"({SEES}) 2>/dev/null") + "\n" == BLIND
def test_popen(): assert os.popen(SEES).read() == BLIND
def test_system():
    assert os.waitstatus_to_exitcode(os.system(f"({SEES}) >/app/seen; exit 3")) == 3
    assert open("seen").read() == BLIND
def test_spawn():
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"({SEES}) >/app/spawned"], os.environ)
    assert os.waitpid(pid, 0)[1] == 0
    assert open("spawned").read() == BLIND
def test_spawnlp():
    assert os.spawnlp(os.P_WAIT, "sh", "sh", "-c", f"({SEES}) >/app/spawned2") == 0
    assert open("spawned2").read() == BLIND
def test_pty():
    read = []
    pty.spawn(["sh", "-c", f"({SEES}) 2>/dev/null"], lambda fd: read.append(os.read(fd, 999)) or read[-1])
    assert b"".join(read).decode().replace("\r", "") == BLIND
def test_asyncio():
    async def run():
        started = await asyncio.create_subprocess_exec("sh", "-c", SEES, stdout=-1, stderr=-3)
        return (await started.communicate())[0].decode()
    assert asyncio.run(run()) == BLIND
def test_input_folder_environment():
    ran = subprocess.run(["sh", "-c", "cat; pwd; echo $OWN$LEVEL"], input="x\n", cwd="/tmp", env={"OWN": "1", "PATH": os.defpath},
                         capture_output=True, text=True)
    assert ran.stdout == "x\n/tmp\n1\n"
def test_killed():
    running = subprocess.Popen(["sleep", "600"])
    running.kill()
    assert running.wait() == -9
def test_timeout():
    with pytest.raises(subprocess.TimeoutExpired): subprocess.run(["sh", "-c", "sleep 600"], timeout=0.2)
def test_what_cant_be_run():
    with pytest.raises(FileNotFoundError, match="/app/none"): subprocess.run(["/app/none"])
    with pytest.raises(FileNotFoundError): subprocess.run(["no-such-program"])
    with pytest.raises(PermissionError): subprocess.run(["/app/in.txt"])
    with pytest.raises(FileNotFoundError): os.execv("/app/none", ["none"])
def test_status(): assert subprocess.run("exit 7", shell=True).returncode == 7
def test_server():
    server = subprocess.Popen(["python3", "-m", "http.server", "8199", "--bind", "127.0.0.1"], stderr=-3)
    import time, urllib.request
    for _ in range(200):
        try:
            assert urllib.request.urlopen("http://127.0.0.1:8199/in.txt").read() == b"in\n"
            break
        except OSError: time.sleep(0.05)
    else: raise AssertionError
def test_threads_and_forks():
    import concurrent.futures, multiprocessing
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda n: subprocess.check_output(["echo", str(n)]), [1, 2])) == [b"1\n", b"2\n"]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]
def test_what_is_honest_is_let():
    import ast, collections, ctypes, dataclasses, decimal, enum, sqlite3, ssl, tarfile, typing, unittest.mock, zipfile
    collections.namedtuple("N", "a b")(1, 2)
    dataclasses.make_dataclass("D", ["x"])(1)
    enum.Enum("E", "a b")
    sqlite3.connect("/app/db").execute("create table t (x)")
    ctypes.CDLL(None).getpid()
    unittest.mock.Mock()(1)
    assert ast.literal_eval("[1]") == [1]
def test_leaves_a_thread(): threading.Thread(target=threading.Event().wait).start()
"""


def test_all_that_tests_start_is_confined_and_else_as_ever(confining):
    task = replace(TASK, variables=(("LEVEL", "3"),))
    report = confining(task=task, test_starting=STARTING, secret="the secret")
    assert report.cause is None, report.detail
    assert [name for name, passed in report.assertions if not passed] == []
    assert report.total == STARTING.count("def test_")


PRELOADED = """
import subprocess

def test_loaded_once():
    ran = subprocess.run(["/bin/true"], capture_output=True, text=True)
    assert ran.stderr.count("/app/none.so") == 1, ran.stderr  # by the program itself
"""


def test_variables_of_the_task_reach_programs_and_not_what_judges_or_confines(confining):
    """A library that the agent made would else be loaded beside the tests."""
    task = replace(TASK, variables=(("BASH_ENV", "/app/env"), ("LD_PRELOAD", "/app/none.so")))
    report = confining("echo 'echo sourced; exit 0' >env", task=task, test_it=PRELOADED)
    assert report.resolved, report.detail


BROKEN = {
    "a file that can't be collected": ("open('/app/none')", "crashed", False, "FileNotFoundError"),
    "an assertion at import": ("assert 1 == 2", "crashed", False, "AssertionError"),
    "an answer that isn't a literal": ("import ast; ast.literal_eval('1 +')", "crashed", False, "SyntaxError"),
    "a module that isn't there": ("import pandas", "crashed", None, "test_it.py: ModuleNotFoundError: No module named 'pandas'; "),
    "a name that isn't there": ("from os import none", "crashed", None, "ImportError: cannot import name 'none'"),
    "a mistake in the tests": ("def test(:", "crashed", None, "SyntaxError: invalid syntax"),
    "no test": ("x = 1", "test_set_mismatch", None, "no assertion"),
    "a skipped module": ("import pytest; pytest.skip('no', allow_module_level=True)", "test_set_mismatch", None, "no assertion"),
    "an end without a result": ("import os\ndef test(): os._exit(0)", "missing", None, "without a result"),
    "an end with a status": ("import os\ndef test(): os._exit(3)", "crashed", None, "exit status 3"),
    "an exit of pytest": ("import pytest\ndef test(): pytest.exit('enough')", "crashed", None, "status 2"),
    "a fault": ("import ctypes\ndef test(): ctypes.string_at(0)", "crashed", None, "without a result"),
    "a deadline": ("import time\ndef test(): print('begun'); time.sleep(600)", "timeout", None, "longer than 3 s"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_without_a_result_there_is_a_cause(confining, case):
    text, cause, outcome, told = BROKEN[case]
    report = confining(task=replace(TASK, verifier_timeout=3.0) if cause == "timeout" else TASK, test_it=text)
    assert (report.cause, report.outcome, report.assertions) == (cause, outcome, ())
    assert told in report.detail


COMPILING = """
import sys

def test_nothing_is_compiled_again():
    compiled = []
    sys.addaudithook(lambda event, args: compiled.append(args[1]) if event == "compile" else None)
    import colorsys
    assert compiled == []
"""


def test_in_a_deterministic_sandbox_modules_arent_compiled_again(root):
    """No file seems younger than its clock, so a compiled module doesn't seem to fit its source."""
    judge = judging_files(BubblewrapSandbox, root, deterministic=True)
    report = judge(test_it=COMPILING)
    assert report.resolved, report


FLOODED = """
import resource, subprocess

def test_flooded():
    resource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2)
    subprocess.run(["yes"], capture_output=True, text=True, timeout=60)

def test_next():
    pass
"""


def test_output_without_end_fails_the_test_that_reads_it(confining):
    assert confining(test_it=FLOODED).assertions == (("test_it.py::test_flooded", False), ("test_it.py::test_next", True))


def test_another_number_of_tests_than_the_pool_knows(confining):
    report = confining(task=replace(TASK, assertions=2), test_it="def test(): pass")
    assert report.cause == "test_set_mismatch"


def test_tests_that_dont_have_pytests_names_arent_run(confining):
    report = confining(test_it="def test(): pass", other_test="def test(): assert False")
    assert report.assertions == (("test_it.py::test", True),)


def record(*lines: object) -> ExecResult:
    return ExecResult("", 0, record=b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def end(status: int, *statuses: str) -> dict:
    tests = [{"name": f"t{index}", "status": status} for index, status in enumerate(statuses)]
    summary = {"tests": len(tests), "passed": statuses.count("passed"), "failed": statuses.count("failed")}
    return {"exit": status, "errors": [], "ctrf": {"results": {"summary": summary, "tests": tests}}}


def test_the_folder_of_sandboxes_may_be_given_by_a_link(root):
    link = root.with_name(f"{root.name}-link")
    link.symlink_to(root)
    try:
        report = judging_files(ProcessSandbox, link)(test_it="def test(): assert open('/tests/test_it.py').read()")
    finally:
        link.unlink()
    assert report.resolved, report.detail


def test_once_flagged_is_flagged_whatever_follows():
    report = read_record(record({"in_process": "the module /app/sol.py"}, end(0, "passed")), None)
    assert (report.cause, report.outcome) == ("in_process", None)
    assert "/app/sol.py" in report.detail


@pytest.mark.parametrize(("status", "statuses"), [(0, ("passed", "failed")), (1, ("passed",))])
def test_the_status_and_the_tests_have_to_agree(status, statuses):
    assert read_record(record(end(status, *statuses)), None).cause == "summary_mismatch"
    assert read_record(record(end(0, "passed")), None).resolved


@pytest.mark.parametrize("cut", [b"", b'{"exit": 0, "ct', b"\xff\xfe\n", b"[]\n", b"7\n"])
def test_a_record_without_an_end_is_no_verdict(cut):
    assert read_record(ExecResult("", 0, record=cut), None).cause == "missing"
    assert read_record(ExecResult("", -9, record=cut), None).cause == "crashed"


GUARDED = """
import os, sys
sys.path[:0] = [{grading!r}]
from judge.guard import Guard
sys.path.pop(0)
tests, agent = sys.argv[1:3]
sys.dont_write_bytecode = True
Guard(1, [os.path.dirname(os.__file__)], tests, "/opt/t1x/candidate").install()
code = open(tests + "/t.py").read()
exec(compile(code, tests + "/t.py", "exec"))
os.write(1, b"went on")
"""
SQUARE = "def square(n): return 9\n"
ENTERING = {
    "an import": "sys.path.insert(0, agent); import sol",
    "an import by path": "import importlib.util as u; s = u.spec_from_file_location('x', agent + '/sol.py'); "
    "s.loader.exec_module(u.module_from_spec(s))",
    "compiled code without its source": "sys.path.insert(0, agent); import forged",
    "a zip file": "sys.path.insert(0, agent + '/z.zip'); import zipped",
    "an extension module": "sys.path.insert(0, agent); import native",
    "a module that hides one of the library": "sys.path.insert(0, agent); import antigravity",
    "runpy": "import runpy; runpy.run_path(agent + '/sol.py')",
    "runpy of compiled code": "import runpy; runpy.run_path(agent + '/forged.pyc')",
    "exec": "exec(open(agent + '/sol.py').read())",
    "exec of what was compiled": "exec(compile(open(agent + '/sol.py').read(), 'sol', 'exec'))",
    "eval": "eval('2 + 2')",
    "timeit": "import timeit; timeit.timeit(open(agent + '/sol.py').read(), number=1)",
    "marshal": "import marshal; marshal.loads(open(agent + '/forged.pyc', 'rb').read()[16:])",
    "pickle": "import pickle; pickle.loads(b'cos\\nsystem\\n.')",
    "a library": "import ctypes; ctypes.CDLL(agent + '/native.so')",
    "multiprocessing's spawn": "import multiprocessing as m; m.get_context('spawn').Process(target=print).start()",
    "a program": "import subprocess; subprocess.run(['true'])",
    "exec of a program": "os.execv('/bin/true', ['true'])",
    "the shell": "os.system('true')",
    "a spawned program": "os.posix_spawn('/bin/true', ['true'], {})",
}
REFUSED = {
    "a link to the tests": "open(agent + '/link')",
    "a link to their folder": "os.listdir(agent + '/folder')",
    "a file behind such a link": "open(agent + '/folder/t.py')",
    "a FIFO": "open(agent + '/fifo')",
    "a database": "import sqlite3; sqlite3.connect(agent + '/link')",
    "its size": "os.path.getsize(agent + '/link')",
    "a comparison by size and time": "import filecmp; filecmp.cmp(agent + '/link', tests + '/t.py')",
}


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """A folder as an agent could leave it."""
    import _json
    import importlib.util
    import marshal
    import os
    import shutil
    import zipfile

    folder, tests = tmp_path_factory.mktemp("agent"), tmp_path_factory.mktemp("tests")
    (folder / "sol.py").write_text(SQUARE)
    (folder / "antigravity.py").write_text(SQUARE)
    code = compile(SQUARE, os.__file__, "exec")
    (folder / "forged.pyc").write_bytes(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    with zipfile.ZipFile(folder / "z.zip", "w") as archive:
        archive.writestr("zipped.py", SQUARE)
    if hasattr(_json, "__file__"):
        shutil.copy(_json.__file__, folder / "native.so")
    (folder / "link").symlink_to(tests / "t.py")
    (folder / "folder").symlink_to(tests)
    os.mkfifo(folder / "fifo")
    return folder, tests


def guarded(agent, code: str) -> subprocess.CompletedProcess:
    folder, tests = agent
    (tests / "t.py").write_text(code)
    start = GUARDED.format(grading=str(Path(t1x.grading.__file__).parent))
    argv = [sys.executable, "-I", "-S", "-B", "-c", start, str(tests), str(folder)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("name", ENTERING)
def test_code_of_the_agent_is_told_before_it_runs(agent, name):
    ran = guarded(agent, ENTERING[name])
    assert ran.returncode == 70, ran.stderr
    assert list(json.loads(ran.stdout)) == ["in_process"]


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_mislead_a_test_are_refused(agent, name):
    ran = guarded(agent, f"try: {REFUSED[name]}\nexcept PermissionError as error: print(error)")
    assert "went on" in ran.stdout, ran.stderr
    assert "leads into the folder of the tests" in ran.stdout or "is a FIFO" in ran.stdout


LATER = """
import io, os, pathlib
(path := pathlib.Path(agent, "later")).unlink(missing_ok=True)
path.write_text("x")
mine = open(agent + "/mine", "w+")
mine.write("expected")
mine.flush()
os.unlink(agent + "/mine")
place = {place}

def swap(event, args):
    if event == "open" and str(args[0]) == str(path) and not path.is_symlink():
        path.unlink()
        path.symlink_to(place)

sys.addaudithook(swap)
try: {read}
except PermissionError as error: print(error)
"""
PLACES = ["tests + '/t.py'", "'/proc/self/environ'", "f'/proc/self/fd/{mine.fileno()}'"]


@pytest.mark.parametrize("read", ["open(path)", "path.read_bytes()", "io.open(str(path))", "os.open(path, os.O_RDONLY)"])
@pytest.mark.parametrize("place", PLACES)
def test_a_file_that_becomes_a_link_while_it_is_opened_is_refused(agent, place, read):
    ran = guarded(agent, LATER.format(place=place, read=read))
    assert "later led to " in ran.stdout, ran.stdout + ran.stderr


def test_what_tests_print_is_no_answer(confining):
    reading = "def test_it():\n    print('the answer', flush=True)\n    assert 'the answer' in open('out.txt').read()\n"
    assert confining("ln -s /proc/self/fd/1 out.txt", test_it=reading).assertions == (("test_it.py::test_it", False),)
    assert confining("echo the answer >out.txt", test_it=reading).resolved


def test_files_without_a_name_can_be_opened(agent):
    ran = guarded(agent, "import tempfile\nwith tempfile.TemporaryFile() as own: own.write(b'x')")
    assert ran.stdout.endswith("went on"), ran.stderr


def test_the_whole_standard_library_can_be_imported(agent):
    skipped = {"antigravity", "this", "turtle", "idlelib", "turtledemo", "__main__", "msilib", "winreg", "test", "lib2to3"}
    names = sorted(sys.stdlib_module_names - skipped)
    ran = guarded(agent, f"for name in {names!r}:\n    try: __import__(name)\n    except ImportError: pass")
    assert ran.stdout.endswith("went on"), ran.stdout + ran.stderr
