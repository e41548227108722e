#!/usr/bin/env python3
"""Kills runs at random moments, goes on with them, and compares the bytes with those of an uninterrupted run.

    scripts/kill_test.py                      200 kills, 40 SIGTERMs, 40 extensions of 2000 draws
    scripts/kill_test.py --kills 20 --terms 5 --extensions 5 --draws 500

Only the standard library is needed. Exits with 1 if any byte differs.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--npl", default=os.path.join(ROOT, "target", "release", "npl"), help="the program")
    parser.add_argument("--config", default=os.path.join(ROOT, "configs", "gmm_toy.toml"), help="the experiment")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="changes of it")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--keep-every", default="0.1", help="seconds between two parts")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--terms", type=int, default=40)
    parser.add_argument("--extensions", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    return parser.parse_args()


def digest(run):
    """SHA-256 of the files of a run that hold no times."""
    found = hashlib.sha256()
    with open(os.path.join(run, "manifest.json")) as file:
        names = sorted(json.load(file)["outputs"])
    for name in names:
        if not name.startswith("report"):
            with open(os.path.join(run, name), "rb") as file:
                found.update(name.encode() + b"\0" + file.read())
    return found.hexdigest()


class Campaign:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.random = random.Random(args.seed)
        self.killed_in_writing = 0
        started = time.monotonic()
        whole = os.path.join(folder, "whole")
        subprocess.run(self.command(whole, args.draws), check=True, stdout=subprocess.DEVNULL)
        self.seconds = time.monotonic() - started
        self.expected = digest(whole)
        print(f"uninterrupted: {self.seconds:.1f} s, SHA-256 {self.expected[:16]}…", flush=True)

    def command(self, out, draws):
        command = [self.args.npl, "run", self.args.config, "--quiet", "--resume", "--out", out]
        command += ["--threads", str(self.args.threads), "--keep-every", self.args.keep_every]
        command += ["--set", f"sampler.B={draws}"]
        for change in self.args.set:
            command += ["--set", change]
        return command

    def interrupt(self, out, draws, how):
        """Starts a run, and ends it at a random moment; how it ended."""
        child = subprocess.Popen(
            self.command(out, draws), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until = time.monotonic() + self.random.uniform(0.0, self.seconds)
        # Every third time in the middle of a write: when a temporary file is there.
        hunting = how == signal.SIGKILL and self.random.random() < 1 / 3
        chunks = os.path.join(out, ".npl-chunks", "1-of-1")
        while child.poll() is None and time.monotonic() < until + (10 if hunting else 0):
            if hunting and time.monotonic() > until:
                names = os.listdir(chunks) if os.path.isdir(chunks) else []
                if any(name.endswith(".part." + str(child.pid) + ".tmp") and "finished" not in name for name in names):
                    self.killed_in_writing += 1
                    break
            time.sleep(0.0005 if hunting and time.monotonic() > until else 0.005)
        if child.poll() is None:
            child.send_signal(how)
        return child.wait()

    def finish(self, out):
        subprocess.run(self.command(out, self.args.draws), check=True, stdout=subprocess.DEVNULL)
        same = digest(out) == self.expected
        if same:
            shutil.rmtree(out)
        return same

    def repeat(self, what, count, once):
        good, interrupted = 0, 0
        for i in range(count):
            out = os.path.join(self.folder, f"{what}-{i}".replace(" ", "-"))
            interrupted += once(out)
            good += self.finish(out)
            if (i + 1) % 20 == 0 or i + 1 == count:
                print(f"{what}: {good} of {i + 1} the same; {interrupted} times interrupted", flush=True)
        return good == count

    def kill(self, out):
        return sum(self.interrupt(out, self.args.draws, signal.SIGKILL) != 0 for _ in range(self.random.choice([1, 1, 2])))

    def terminate(self, out):
        code = self.interrupt(out, self.args.draws, signal.SIGTERM)
        # Before it minds its signals it dies of them.
        if code not in (0, 143, -signal.SIGTERM):
            sys.exit(f"a terminated run ended with {code}")
        return code != 0

    def extend(self, out):
        """A shorter run first; every other one is killed on its way to the longer one."""
        first = self.random.randrange(1, self.args.draws)
        subprocess.run(self.command(out, first), check=True, stdout=subprocess.DEVNULL)
        if self.random.random() < 0.5:
            return self.interrupt(out, self.args.draws, signal.SIGKILL) != 0
        return 0


def main():
    args = arguments()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(args, folder)
        good = [
            campaign.repeat("killed", args.kills, campaign.kill),
            campaign.repeat("terminated", args.terms, campaign.terminate),
            campaign.repeat("extended", args.extensions, campaign.extend),
        ]
        print(f"{campaign.killed_in_writing} kills in the middle of a write")
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
