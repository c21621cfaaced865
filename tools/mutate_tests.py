"""The tests that tools/mutate runs: which places each of them reaches, and whether they notice a fault."""

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutate_faults import planted

FOLDERS = ["ir", "ops", "effects", "text", "analysis", "matchers", "rewriter"]
BUILD = "build/dev"  # as elsewhere: what holds no faults is in the compiler cache
MEMORY_KIB = 6 << 20
STUCK_SECONDS = 30  # without any processor time: it waits for what never comes, however busy the machine is
# Death tests run in children that do not say what they reached.
LEFT_OUT = "-*Death*"


class Test:
    def __init__(self, folder, name):
        self.folder, self.name, self.seconds, self.reached = folder, name, 0.0, b""


def write_tree(root, tree, sources):
    files = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout.decode().split("\0")
    files = {name for name in files if name and (root / name).is_file()}
    for name in files:
        source, target = root / name, tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in sources:
            continue  # written with its faults
        if not target.exists() or source.read_bytes() != target.read_bytes():
            shutil.copyfile(source, target)
    for old in [*tree.rglob("*.cc"), *tree.rglob("*.h")]:
        if str(old.relative_to(tree)) not in files and not old.is_relative_to(tree / "build"):
            old.unlink()


def blamed(faults, line):
    """The line of the last fault up to the one that the compiler complains of."""
    return max((fault.line for fault in faults if fault.line <= line), default=None)


def compile_with(root, tree, sources, jobs):
    """Builds with all faults of `sources` (path: faults); those that do not compile are taken out, until the rest does."""
    binary = tree / BUILD
    texts = {path: (root / path).read_text(encoding="utf-8") for path in sources}
    write_tree(root, tree, sources)
    known = binary / "does_not_compile.txt"
    bad_keys = set(known.read_text(encoding="utf-8").splitlines()) if known.exists() else set()
    alive = {path: [fault for fault in faults if fault.key not in bad_keys] for path, faults in sources.items()}

    def write(path):
        changed = planted(texts[path], alive[path])
        if not (tree / path).exists() or (tree / path).read_text(encoding="utf-8") != changed:
            (tree / path).write_text(changed, encoding="utf-8")

    for path in alive:
        write(path)
    if not (binary / "build.ninja").exists():
        subprocess.run(["cmake", "--preset", "dev", "-DFXGRAPH_WITH_TORCH=OFF", "-DFXGRAPH_BENCH=OFF", "-DFXGRAPH_EXAMPLES=OFF"],
                       cwd=tree, check=True, stdout=subprocess.DEVNULL)
    targets = [f"fxgraph_{name}_test" for name in FOLDERS]
    for _ in range(20):
        done = subprocess.run(["cmake", "--build", binary, "-j", str(jobs), "--target", *targets, "--", "-k", "0"],
                              capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return [fault for faults in alive.values() for fault in faults]
        bad = {(m.group(1), int(m.group(2))) for m in re.finditer(r"(\S+?\.(?:cc|h)):(\d+):\d+: error", done.stdout)}
        dropped = set()
        for path, faults in alive.items():
            included = path.removeprefix("src/")  # headers are found as users find them, in fxgraph/
            lines = {blamed(faults, line) for name, line in bad if name.endswith("/" + included)}
            dropped |= {fault.key for fault in faults if fault.line in lines}
            alive[path] = [fault for fault in faults if fault.key not in dropped]
            if lines:
                write(path)
        if not dropped:
            sys.exit("the tests do not build:\n" + done.stdout[-4000:])
        bad_keys |= dropped
        known.write_text("\n".join(sorted(bad_keys)) + "\n", encoding="utf-8")
    sys.exit("the tests do not build with faults in them")


def processor_time(pid):
    """Of the process, in ticks of the clock."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


# ---- running ---------------------------------------------------------------------------------------------------------
class Runner:
    """Runs tests from the root of the copy, each with so much processor time, however busy the machine is."""

    def __init__(self, tree, jobs):
        self.root, self.binaries, self.jobs = tree, tree / BUILD / "tests", jobs
        self.tests = []

    def run(self, folder, names, fault, seconds, reached=None):
        """Returns whether all passed, the processor time taken, and the test that failed, broke down or did not end."""
        environment = dict(os.environ, FX_FAULT=str(fault), GTEST_FILTER=":".join(names), GTEST_FAIL_FAST="1")
        if reached:
            environment["FX_REACHED"] = reached
        # Runs away neither with the processor, nor with memory, nor with the disk.
        command = f"ulimit -c 0; ulimit -t {int(seconds) + 1}; ulimit -v {MEMORY_KIB}; ulimit -f 131072; exec \"$0\""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(["sh", "-c", command, self.binaries / f"fxgraph_{folder}_test"], cwd=self.root,
                                       env=environment, stdout=output, stderr=subprocess.DEVNULL)
            used, since = -1.0, time.monotonic()
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > since + STUCK_SECONDS:
                    now, since = processor_time(process.pid), time.monotonic()
                    if now == used:
                        process.kill()
                    used = now
                time.sleep(0.002)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            ran = re.findall(rb"^\[ RUN      \] (\S+)", output.read(), re.M) if status else []
        return status == 0, usage.ru_utime + usage.ru_stime, ran[-1].decode() if ran else "(start)"

    def find_tests(self, slow):
        """Runs every test alone without a fault, for its time and the places that it reaches. Returns those that
        take longer than `slow` seconds, or fail: where they run they have less memory and room for files."""
        for folder in FOLDERS:
            listed = subprocess.run([self.binaries / f"fxgraph_{folder}_test", "--gtest_list_tests", f"--gtest_filter={LEFT_OUT}"],
                                    cwd=self.root, capture_output=True, text=True, check=True).stdout
            suite = ""
            for line in listed.splitlines():
                name = line.split("#")[0].strip()
                if line.startswith("  "):
                    self.tests.append(Test(folder, suite + name))
                elif not name.startswith("Running"):
                    suite = name
        with ThreadPoolExecutor(self.jobs) as pool:
            fit = list(pool.map(lambda test: self.measure(test, slow), self.tests))
        left_out = [test for test, good in zip(self.tests, fit) if not good]
        self.tests = sorted((test for test, good in zip(self.tests, fit) if good), key=lambda test: test.seconds)
        return left_out

    def measure(self, test, slow):
        """What was measured with the same program and the same records holds."""
        kept = self.binaries / "measured" / self.digest(test.folder) / test.name.replace("/", "_")
        reached = kept.with_name(kept.name + ".reached")
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            passed, test.seconds, _ = self.run(test.folder, [test.name], 0, slow, str(reached))
            if not passed:
                return False
            kept.write_text(str(test.seconds), encoding="utf-8")
        test.seconds = float(kept.read_text(encoding="utf-8"))
        test.reached = reached.read_bytes() if reached.exists() else b""
        return test.seconds <= slow

    @functools.cache
    def digest(self, folder):
        read = [self.binaries / f"fxgraph_{folder}_test", *sorted((self.root / "tests/corpus").rglob("*.*"))]
        return hashlib.sha1(b"".join(path.read_bytes() for path in read if path.is_file())).hexdigest()[:12]

    def batches(self, fault, first):
        """The tests that reach the fault in the order to try them: the one that noticed it before, own folder, cheap ones."""
        reaching = [test for test in self.tests if test.reached and test.reached[fault.number]]
        known = [test for test in reaching if test.name == first]
        if known:
            yield known[0].folder, known
        own = Path(fault.path).parts[1 if fault.path.startswith("src/") else 0]
        for low, high in ((-1, 0.02), (0.02, 0.2), (0.2, 1), (1, 1e9)):
            for folder in sorted(FOLDERS, key=lambda name: name != own):
                batch = [test for test in reaching if test.folder == folder and low < test.seconds <= high]
                if batch:
                    yield folder, batch

    def noticed_by(self, fault, first=None):
        """The test that notices the fault; "" if none does, None if none even reaches it."""
        reached = False
        for folder, batch in self.batches(fault, first):
            reached = True
            passed, _, name = self.run(folder, [test.name for test in batch], fault.number,
                                       10 * sum(test.seconds for test in batch) + 5)
            if not passed:
                return name
        return "" if reached else None
