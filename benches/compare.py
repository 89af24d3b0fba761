"""Loopwright beside labloop, measured in one run: medians of interleaved repeats.

A trial here is a changed-and-reverted one: the proposer writes one small file, the measurement
prints its number. Its cost is what ten more trials add to an invocation, so that starting and ending
are not in it. What a trial costs without its time in syncs is measured with syncs answered at once
(no_sync.c), in turn with the other; syncs are counted under strace, and all of it is printed.
"""

import argparse
import json
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PROPOSE = 'echo "1$LOOPWRIGHT_TRIAL$LABLOOP_TRIAL" > x'
RUN = "sh run.sh"


def run(command, cwd, env, **options):
    """Runs a command that must succeed; seconds of wall clock."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{command} failed ({done.returncode}) in {cwd}:\n{done.stdout.decode()[-2000:]}")
    return seconds


class Tool:
    """One of the two, with what differs between them."""

    def __init__(self, name, binary):
        self.name, self.binary = name, os.path.abspath(binary)

    def trials(self, count):
        shared = ["--run", RUN, "--metric", "m", "--propose", PROPOSE, "--trials", str(count)]
        if self.name == "labloop":
            return [self.binary, "run", *shared, "--sandbox", "none", "--give-up-after", "0"]
        # The same rule on both sides.
        return [self.binary, "run", *shared, "--goal", "min", "--give-up-after", "0", "--rule", "threshold"]

    def baseline(self):
        goal = [] if self.name == "labloop" else ["--goal", "min"]
        return [self.binary, "baseline", "--run", RUN, "--metric", "m", *goal]

    def log(self):
        return [self.binary, "log", *(["--metric", "m"] if self.name == "labloop" else [])]


class Bench:
    def __init__(self, options, home):
        self.options, self.home = options, home
        self.env = {
            "PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.path.join(home, "gitconfig"),
            "XDG_CACHE_HOME": os.path.join(home, "cache"),
        }
        with open(self.env["GIT_CONFIG_GLOBAL"], "w", encoding="utf-8") as config:
            config.write("[user]\n\tname = Bench\n\temail = bench@example.org\n")
        self.ours = Tool("loopwright", options.loopwright)
        self.peer = Tool("labloop", options.labloop)
        self.rows = []

    def repository(self, name, files=0):
        """A fresh repository with a baseline taken."""
        path = os.path.join(self.home, name)
        os.mkdir(path)
        run(["git", "init", "-q", "-b", "main"], path, self.env)
        with open(os.path.join(path, "x"), "w", encoding="utf-8") as file:
            file.write("10\n")
        with open(os.path.join(path, "run.sh"), "w", encoding="utf-8") as file:
            file.write('echo "m=$(cat x)"\n')
        with open(os.path.join(path, ".gitignore"), "w", encoding="utf-8") as file:
            file.write("labloop.jsonl\n__pycache__/\n")
        for number in range(files):
            folder = os.path.join(path, "files", f"{number % 200:03}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"{number}.txt"), "w", encoding="utf-8") as file:
                file.write(f"file {number}\n" * 20)
        run(["git", "add", "-A"], path, self.env)
        run(["git", "commit", "-q", "-m", "start"], path, self.env)
        return path

    def per_trial(self, tool, path, extra=10, env=None):
        """Seconds that one more trial adds."""
        one = run(tool.trials(1), path, env or self.env)
        more = run(tool.trials(1 + extra), path, env or self.env)
        return max((more - one) / extra, 1e-6)

    def syncs(self, tool, path, extra=10):
        """Syncs per trial."""
        found = []
        for count in (1, 1 + extra):
            log = os.path.join(self.home, "strace.log")
            trace = ["strace", "-f", "-e", "trace=fsync,fdatasync,syncfs,sync", "-o", log]
            run(trace + tool.trials(count), path, self.env)
            with open(log, encoding="utf-8", errors="replace") as lines:
                found.append(sum(1 for line in lines if re.search(r"\bsync\w*\(|f(data)?sync\(", line)))
        return (found[1] - found[0]) / extra

    def both(self, what, repeats, measure, limit=None, unit="ms", scale=1000):
        """Measures both tools, interleaved, and prints a row with the ratio of medians."""
        values = {self.ours.name: [], self.peer.name: []}
        for _ in range(repeats):
            for tool in (self.ours, self.peer):
                values[tool.name].append(measure(tool))
        ours, peer = (statistics.median(values[tool.name]) for tool in (self.ours, self.peer))
        self.row(what, ours * scale, peer * scale, unit, limit)

    def row(self, what, ours, peer, unit, limit):
        ratio = ours / peer if peer else None
        good = None if limit is None or ratio is None else ratio <= limit
        self.rows.append({"what": what, "loopwright": ours, "labloop": peer, "unit": unit,
                          "ratio": ratio, "limit": limit, "within": good})
        text = "" if ratio is None else f"{ratio:9.4f}"
        bound = "" if limit is None else f"<= {limit:.4f} {'ok' if good else 'NOT MET'}"
        peers = "" if peer is None else f"{peer:10.2f}"
        print(f"{what:<52}{ours:10.2f}{peers:>10} {unit:<6}{text:>9} {bound}", flush=True)

    def seed(self, path, count):
        """Puts `count` reverted trials behind the loop, in both tools' records."""
        store = os.path.join(path, ".git", "loopwright")
        run([self.options.seeder, store, "default", str(count)], path, self.env)
        rows = []
        for index in range(1, count + 1):
            rows.append(json.dumps({
                "commit": None, "direction": "main", "duration_seconds": 0.0038416480019805 + index / 1e9, "harness": None,
                "incumbent": 10.0, "index": index, "metric": 11.0 + index, "note": "",
                "outcome": "reverted", "stdout_tail": f"m={11 + index}\n"}, sort_keys=True))
        with open(os.path.join(path, "labloop.jsonl"), "a", encoding="utf-8") as ledger:
            ledger.write("\n".join(rows) + "\n")

    def fresh(self, name, files=0):
        path = self.repository(name, files)
        for tool in (self.peer, self.ours):
            run(tool.baseline(), path, self.env)
        return path

    def trial_rows(self, what, paths, extra, limit):
        """Rows of one trial's cost, a repeat in each of these repositories."""
        without = {**self.env, "LD_PRELOAD": self.options.no_sync}
        walls = {(tool.name, env): [] for tool in (self.ours, self.peer) for env in ("", "without")}
        for path in paths:
            for tool in (self.ours, self.peer):
                walls[tool.name, ""].append(self.per_trial(tool, path, extra))
                walls[tool.name, "without"].append(self.per_trial(tool, path, extra, without))
        medians = {key: statistics.median(values) * 1000 for key, values in walls.items()}
        self.row(f"{what}, wall", medians["loopwright", ""], medians["labloop", ""], "ms", None)
        self.row(f"{what}, without syncs", medians["loopwright", "without"],
                 medians["labloop", "without"], "ms", limit)
        if shutil.which("strace"):
            ours, peer = (self.syncs(tool, paths[-1]) for tool in (self.ours, self.peer))
            self.row(f"{what}, syncs", ours, peer, "count", None)
        else:
            print("strace is not installed: syncs are not counted")

    def flat(self, path, count):
        """System calls and bytes written per trial, means over `count` trials."""
        if not shutil.which("strace"):
            return None
        found = []
        for trials in (1, 1 + count):
            log = os.path.join(self.home, "calls.log")
            run(["strace", "-f", "-qq", "-c", "-o", log] + self.ours.trials(trials), path, self.env)
            with open(log, encoding="utf-8") as lines:
                # The counts stand in the fourth column; the total line has one column less.
                calls = sum(int(line.split()[3]) for line in lines
                            if re.match(r"\s*[0-9.]+\s+[0-9.]+\s+\d+\s+\d+", line)
                            and not line.rstrip().endswith("total"))
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock
            run(self.ours.trials(trials), path, self.env)
            blocks = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock - before
            found.append((calls, blocks * 512))
        return tuple((more - one) / count for one, more in zip(*found))

    def memory(self):
        """Peak memory of the tool itself while a command prints 300 MB."""
        def peak(tool):
            path = self.fresh(f"big-{tool.name}")
            big = "head -c 300000000 /dev/zero | tr '\\0' 'x' | fold -w 100; echo m=12"
            line = [part if part != RUN else big for part in tool.trials(1)]
            if tool.name == "loopwright":
                line += ["--loop", "big"]
            process = subprocess.Popen(line, cwd=path, env=self.env, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            most = 0
            while process.poll() is None:
                try:
                    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
                        for entry in status:
                            if entry.startswith("VmHWM"):
                                most = max(most, int(entry.split()[1]))
                except OSError:
                    pass
                time.sleep(0.02)
            return most / 1024
        ours, peer = peak(self.ours), peak(self.peer)
        self.row("peak memory, a command printing 300 MB", ours, peer, "MiB", None)
        self.row("  ours against 64 MiB", ours, 64.0, "MiB", 1.0)

    def all(self):
        quick = self.options.quick
        repeats = 3 if quick else 9
        many = 2_000 if quick else 10_000
        print(f"{platform.platform()}, {os.cpu_count()} cores, medians of {repeats} interleaved repeats")
        print(f"{'':<52}{'loopwright':>10}{'labloop':>10} {'unit':<6}{'ratio':>9}")
        # Each repeat in a repository of its own: what the trials before it left behind counts too.
        empty = [self.fresh(f"empty-{repeat}") for repeat in range(repeats)]
        self.trial_rows("a reverted trial, empty history", empty, 20, 1 / 3)
        path = empty[0]
        self.both("--version", repeats, lambda tool: run([tool.binary, "--version"], path, self.env),
                  1 / 15)
        self.seed(path, many)
        self.trial_rows(f"a reverted trial, {many} behind it", [path] * max(repeats // 3, 3), 10,
                        1 / 60 if many == 10_000 else None)
        self.both(f"log over {many} trials", repeats, lambda tool: run(tool.log(), path, self.env),
                  1 / 20)
        young = self.fresh("young")
        self.seed(young, 200)
        early, late = self.flat(young, 50 if quick else 200), self.flat(path, 50 if quick else 200)
        if early and late:
            for name, index in (("system calls", 0), ("bytes written", 1)):
                self.row(f"{name} per trial, {many} behind it against 200", late[index], early[index],
                         "", 1.10)
        files = self.fresh("files", 2_000 if quick else 20_000)
        self.both("a reverted trial, many files", max(repeats // 3, 3),
                  lambda tool: self.per_trial(tool, files, 3), 1.0)
        self.memory()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("loopwright", "labloop", "seeder", "no-sync"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.seeder = os.path.abspath(options.seeder)
    options.no_sync = os.path.abspath(options.no_sync)
    home = tempfile.mkdtemp(prefix="loopwright-bench-")
    try:
        bench = Bench(options, home)
        bench.all()
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(bench.rows, file, indent=1)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
