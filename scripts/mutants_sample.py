#!/usr/bin/env python3
"""A random sample of the mutants that cargo-mutants would make, against the tests that concern their files.

    cp -a . ../copy && scripts/mutants_sample.py --copy ../copy --count 200 --table mutants.csv

cargo-mutants only lists them (`cargo mutants --list --json`). All mutants of the sample are woven into one program, each behind its number
in NPL_MUTANT: a function becomes `if mutant(17) { body with mutant 17 } else if … { body }`, so that one build serves all of them. A
mutant that does not compile is taken out by the place of the error, and counted as such. Rows of the table are kept: what is in
it is not tried again. Only the standard library is needed.
"""

import argparse
import bisect
import concurrent.futures
import csv
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Files, and what concerns them: a test program, and the modules of it. The quick ones come first: the first that fails is enough.
CONCERNS = [
    ("src/process/", [("lib", ["process::"]), ("laws", ["weights::", "measure::"]), ("laws", ["design::", "functionals::"]),
                      ("laws", ["families::", "subsample::"])]),
    ("src/store/", [("lib", ["store::"]), ("lib", ["run::"]), ("laws", ["resume::"]), ("program", ["resume::"]),
                    ("program", ["security::", "samples::", "formats::", "relabel::", "compare::", "bad_inputs::", "cli::"])]),
    ("src/run/", [("laws", ["chunks::", "resume::content", "resume::what_is_kept", "resume::parts", "resume::joined", "resume::more_draws_cost",
                            "resume::draws_that", "resume::another"]),
                  ("lib", ["run::"]), ("laws", ["chunks::", "resume::"]), ("program", ["folds::", "questions::", "warnings::", "cli::"]),
                  ("program", ["resume::"]), ("program", ["path::", "methods::", "scale::", "formats::", "report::"])]),
]
# Laws that need no other part of the tests than these.
ALONE = ["support", "weights", "measure", "functionals", "chunks", "resume", "chains"]
FILES = ["src/process/weights.rs", "src/process/mod.rs", "src/run/*.rs", "src/store/*.rs"]
SWITCH = """
/// Which mutant is on.
pub fn mutant(number: u32) -> bool {
    static ON: std::sync::LazyLock<u32> =
        std::sync::LazyLock::new(|| std::env::var("NPL_MUTANT").ok().and_then(|v| v.parse().ok()).unwrap_or(0));
    *ON == number
}
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copy", type=Path, required=True, help="a copy of the project, with a warm target folder, to break")
    parser.add_argument("--list", type=Path, help="the answer of `cargo mutants --list --json`, if it was asked before")
    parser.add_argument("--own-list", action="store_true", help="do not ask cargo-mutants, whether it is there or not")
    parser.add_argument("--count", type=int, default=200, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--table", type=Path, default=Path("mutants.csv"), help="where outcomes go")
    parser.add_argument("--cargo", default="cargo", help="what stands for cargo in the copy, with its arguments")
    parser.add_argument("--run", default="", help="what stands before a test program")
    parser.add_argument("--jobs", type=int, default=1, help="so many mutants at a time, each with two threads")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so long; the next time goes on")
    parser.add_argument("--again", action="store_true", help="try survivors of the table again")
    parser.add_argument("--one-program", action="store_true",
                        help="laws are compiled into the unit tests, and the program is not built: the library is compiled once, not twice")
    parser.add_argument("--named", nargs="+", default=[], metavar="WORD",
                        help="also those of mutants.py whose names or files have one of these words, each against its own test")
    return parser.parse_args()


def all_mutants(args):
    """As cargo-mutants lists them; where it is not installed, by its rules."""
    if args.list:
        return json.loads(args.list.read_text())
    # A disk that fails is part of the tests.
    files = sorted(path for pattern in FILES for path in ROOT.glob(pattern) if path.name != "faulty.rs")
    if shutil.which("cargo-mutants") and not args.own_list:
        words = [word for file in files for word in ("-f", str(file.relative_to(ROOT)))]
        done = subprocess.run(["cargo", "mutants", "--list", "--json", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    return [mutant for file in files for mutant in own_list(str(file.relative_to(ROOT)))]


# What cargo-mutants puts in the place of an operator.
OPERATORS = {"==": ["!="], "!=": ["=="], "&&": ["||"], "||": ["&&"], "<": ["==", ">", "<="], ">": ["==", "<", ">="], "<=": [">"],
             ">=": ["<"], "+": ["-", "*"], "+=": ["-=", "*="], "-": ["+", "/"], "*": ["+", "/"], "-=": ["+=", "/="], "*=": ["+=", "/="],
             "/": ["%", "*"], "/=": ["%=", "*="], "%": ["/", "+"], "<<": [">>"], ">>": ["<<"], "&": ["|", "^"], "^": ["|", "&"]}


def values(kind):
    """What cargo-mutants puts in the place of a body that answers this type."""
    kind = kind.strip()
    inner = lambda name: re.fullmatch(rf"(?:\w+::)*{name}<(.*)>", kind)
    if kind in ("", "()"):
        return ["()"]
    if kind == "bool":
        return ["true", "false"]
    if kind in ("usize", "u64", "u32", "u16", "u8"):
        return ["0", "1"]
    if kind in ("i64", "i32"):
        return ["0", "1", "-1"]
    if kind in ("f64", "f32"):
        return ["0.0", "1.0", "-1.0"]
    if kind == "String":
        return ["String::new()", "\"xyzzy\".into()"]
    if kind in ("&str", "&'static str"):
        return ["\"\"", "\"xyzzy\""]
    if found := inner("Result"):
        return [f"Ok({value})" for value in values(found.group(1).split(", Fault")[0])]
    if found := inner("Option"):
        return ["None"] + [f"Some({value})" for value in values(found.group(1))]
    if found := inner("Vec"):
        return ["vec![]"] + [f"vec![{value}]" for value in values(found.group(1))]
    if found := re.fullmatch(r"&(?:'\w+ )?\[(.*)\]", kind):
        return ["Vec::leak(Vec::new())"] + [f"Vec::leak(vec![{value}])" for value in values(found.group(1))]
    if re.match(r"impl Iterator", kind):
        return ["::std::iter::empty()"]
    if re.match(r"(&|impl|dyn|Self$|Box<dyn)", kind):
        return []
    if kind.startswith("(") and kind.endswith(")") and "<" not in kind:
        parts = [values(part) for part in kind[1:-1].split(",")]
        return ["(" + ", ".join(part[0] for part in parts) + ")"] if all(parts) else []
    return ["Default::default()"]


def own_list(file):
    """By the layout of rustfmt: operators between two operands have a space on both sides."""
    source = Source(ROOT / file)
    end = source.text.find("#[cfg(test)]\nmod tests")
    text = source.text if end < 0 else source.text[:end]
    blank = lambda found: re.sub(r"[^\n]", "_", found.group()) if found.group()[0] in "/rb\"'" else found.group()
    plain = TOKEN.sub(blank, text)
    span = lambda first, last: {"start": source.place(first), "end": source.place(last)}
    functions = [f for f in source.functions() if f[2] <= len(text) and not re.search(r"\bfn new\b", text[f[0]:f[1]])]
    for start, left, right in functions:
        head = plain[start:left]
        name = re.search(r"fn (\w+)", head).group(1)
        answer = re.search(r"-> (.*?)\s*(?:where.*)?$", head, re.S)
        within = {"span": span(start, right)}
        make = lambda first, last, new, genre, what: {
            "file": file, "function": within, "span": span(first, last), "replacement": new, "genre": genre,
            "name": "{}:{line}:{column}: {what}".format(file, what=what, **source.place(first))}
        body = text[left + 1:right - 1]
        for value in values(answer.group(1) if answer else "") if body.strip() else []:
            if value != body.strip():
                yield make(left + 1, right - 1, f" {value} ", "FnValue", f"replace {name} with {value}")
        if any(f[1] < start and right < f[2] for f in functions):
            continue
        for found in re.finditer(r"(?<=[\s])(==|!=|&&|\|\||<=|>=|<<|>>|\+=|-=|\*=|/=|[-+*/%<>&^])(?= )", plain[left:right]):
            at = left + found.start()
            for new in OPERATORS[found.group()]:
                yield make(at, at + len(found.group()), new, "BinaryOperator", f"replace {found.group()} with {new} in {name}")
        for found in re.finditer(r"(?<=[\s(,|&=])[!-](?=[A-Za-z_(*&])", plain[left:right]):
            at = left + found.start()
            yield make(at, at + 1, "", "UnaryOperator", f"delete {found.group()} in {name}")
        for found in re.finditer(r"(?<= if )([^\n{]*?)(?= =>)", plain[left:right]):
            first, last = left + found.start(), left + found.end()
            for new in ("true", "false"):
                yield make(first, last, new, "MatchArmGuard", f"replace match guard {text[first:last]} with {new} in {name}")


def named_mutants(words):
    """Mutants of mutants.py that lie within a function, in the form of cargo-mutants."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import mutants

    for name, file, old, new, target, test in mutants.MUTANTS:
        if not any(word in f"{name} {file}" for word in words):
            continue
        source = Source(ROOT / file)
        if source.text.count(old) != 1:
            sys.exit(f"{name}: its text is found {source.text.count(old)} times in {file}")
        at = source.text.index(old)
        functions = (body for body in source.functions() if body[1] <= at and at + len(old) <= body[2])
        start, _, end = max(functions, default=(None, None, None))
        if start is None:
            sys.exit(f"{name}: it is not within a function")
        step = ("lib", [test]) if target == "lib" else (mutants.program_of(target), [f"{target}::{test}"])
        place = lambda offset: source.place(offset)
        span = lambda first, last: {"start": place(first), "end": place(last)}
        yield {"name": name, "file": file, "function": {"span": span(start, end)}, "span": span(at, at + len(old)), "replacement": new,
               "genre": "named", "steps": [step]}


class Source:
    """A file, whose places are lines and columns from 1."""

    def __init__(self, path):
        self.text = path.read_text()
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, place):
        return self.starts[place["line"] - 1] + place["column"] - 1

    def place(self, offset):
        line = bisect.bisect_right(self.starts, offset)
        return {"line": line, "column": offset - self.starts[line - 1] + 1}

    def functions(self):
        """Where each function begins, and its body begins and ends."""
        for found in re.finditer(r"^ *(?:pub(?:\([a-z ]+\))? )?(?:unsafe )?fn \w+", self.text, re.M):
            body = body_of(self.text, found.start(), len(self.text), declared=True)
            if body:
                yield found.start(), *body

    def range(self, span):
        return self.at(span["start"]), self.at(span["end"])


def is_const(mutant):
    source = Source(ROOT / mutant["file"])
    start, end = source.range(mutant["function"]["span"])
    return re.search(r"\bconst fn\b", source.text[start:body_of(source.text, start, end)[0]]) is not None


TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|'[A-Za-z_]+|[{};()\[\]]""", re.S)


def body_of(text, start, end, declared=False):
    """The braces of the body of the function at these places; none of one that is only declared."""
    depth, opened, brackets = 0, None, 0
    for token in TOKEN.finditer(text, start, end):
        if token.group() == "{":
            depth, opened = depth + 1, token.start() if depth == 0 and opened is None else opened
        elif token.group() == "}":
            depth -= 1
            if depth == 0:
                return opened, token.end()
        brackets += (token.group() in "([") - (token.group() in ")]")
        if token.group() == ";" and depth == brackets == 0 and declared:
            return None
    raise ValueError(text[start:end])


def weave(source, mutants):
    """The file with these mutants in it, and the lines of each."""
    units = {}
    spans = sorted({source.range(m["function"]["span"]) for m in mutants})
    outermost = lambda span: min(s for s in spans if s[0] <= span[0] and span[1] <= s[1])
    for mutant in mutants:
        units.setdefault(outermost(source.range(mutant["function"]["span"])), []).append(mutant)
    out, at, lines = [], 0, {}
    line = lambda: sum(piece.count("\n") for piece in out) + 1
    for (start, end), inside in sorted(units.items()):
        text = source.text
        left, right = body_of(text, start, end)
        head = text[at:left]
        boxed = re.search(r"-> impl (Iterator<.*>)\s*$", head)
        if boxed:
            head = head[:boxed.start()] + f"-> Box<dyn {boxed.group(1)} + '_> "
        block = (lambda body: f"{{ Box::new({body}) }}") if boxed else (lambda body: body)
        out.append(head + "{\n")
        for mutant in inside:
            first, last = source.range(mutant["span"])
            replacement = mutant["replacement"]
            begun = line()
            out.append(f"if crate::mutant({mutant['number']}) ")
            out.append(block(text[left:first] + replacement + text[last:right]) + "\nelse ")
            lines[mutant["number"]] = (begun, line() - 1)
        out.append(block(text[left:right]) + "\n}")
        at = right
    out.append(source.text[at:])
    return "".join(out), lines


def build(args, sample):
    """Weaves and builds until what is left compiles: the test programs, and the mutants that do not compile."""
    laws = "".join(f'#[cfg(test)]\n#[path = "../tests/laws/{law}.rs"]\nmod {law};\n' for law in ALONE)
    inside = "#[cfg(test)]\nextern crate self as npl;\n" + laws if args.one_program else ""
    library = (ROOT / "src/lib.rs").read_text() + SWITCH + inside
    if (args.copy / "src/lib.rs").read_text() != library:
        (args.copy / "src/lib.rs").write_text(library)
    # What did not compile the last time need not be tried again.
    memory = args.table.with_suffix(".broken.json")
    broken = {int(k): v for k, v in json.loads(memory.read_text()).items()} if memory.exists() else {}
    while True:
        places = {}
        for file in sorted({m["file"] for m in sample}):
            left = [m for m in sample if m["file"] == file and m["number"] not in broken]
            text, lines = weave(Source(ROOT / file), left) if left else ((ROOT / file).read_text(), {})
            places[file] = lines
            if (args.copy / file).read_text() != text:
                (args.copy / file).write_text(text)
        others = [] if args.one_program else ["--test", "laws", "--test", "program"]
        words = ["test", "--no-run", "--lib", *others, "--message-format=json"]
        done = subprocess.run([*args.cargo.split(), *words], cwd=args.copy, capture_output=True, text=True)
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = set()
        for message in (m["message"] for m in messages if m["reason"] == "compiler-message"):
            for span in message["spans"] if message["level"] == "error" else []:
                for number, (first, last) in places.get(span["file_name"], {}).items():
                    if first <= span["line_start"] <= last:
                        found.add(number)
                        broken[number] = message["message"].splitlines()[0]
        if done.returncode == 0:
            names = {"npl": "lib", "laws": "laws", "program": "program"}
            artifacts = [m for m in messages if m["reason"] == "compiler-artifact" and m.get("executable") and m["profile"]["test"]]
            kinds = {m["target"]["name"]: m["executable"] for m in artifacts if "bin" not in m["target"]["kind"]}
            return {names[name]: path for name, path in kinds.items() if name in names}, broken
        if not found:
            sys.exit(done.stderr[-3000:] + "\nthe copy does not compile, and no mutant is at fault")
        memory.write_text(json.dumps(broken))
        print(f"{len(found)} do not compile", flush=True)


def run(args, programs, step, number, limit):
    """Whether these tests pass, seconds of processor time, and what was said."""
    program, modules = step
    command = [*args.run.split(), programs[program], *modules, "--test-threads", "2"]
    env = dict(os.environ, NPL_MUTANT=str(number), RUST_BACKTRACE="0")

    def limits():
        os.setpgid(0, 0)
        os.nice(5)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, cwd=args.copy, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limits,
                               errors="replace")
    alarm = threading.Timer(limit * 10 + 60, lambda: os.killpg(process.pid, signal.SIGKILL))
    alarm.start()
    said, failed = [], False
    for line in process.stdout:
        said.append(line)
        # One that fails is enough.
        if line.startswith("test ") and line.rstrip().endswith("FAILED"):
            failed = True
            os.killpg(process.pid, signal.SIGKILL)
            break
    process.stdout.close()
    code = process.wait()
    alarm.cancel()
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        code = 101 if failed else "timeout"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return code, seconds, "".join(said)


def main():
    args = arguments()
    # What is computed by the compiler cannot ask which mutant is on.
    mutants = [m for m in all_mutants(args) if m.get("function") and not is_const(m)]
    mutants.sort(key=lambda m: (m["file"], m["span"]["start"]["line"], m["span"]["start"]["column"], m["replacement"]))
    for number, mutant in enumerate(mutants, start=1):
        mutant["number"] = number
    sample = random.Random(args.seed).sample(mutants, min(args.count, len(mutants)))
    print(f"{len(sample)} of {len(mutants)} mutants", flush=True)
    named = list(named_mutants(args.named))
    for number, mutant in enumerate(named, start=len(mutants) + 1):
        mutant["number"] = number
    sample += named
    programs, broken = build(args, sample)
    known = {}
    if args.table.exists():
        known = {row["name"]: row for row in csv.DictReader(args.table.open())}
    if args.again:
        known = {name: row for name, row in known.items() if row["outcome"] not in ("survived",)}
    for mutant in sample:
        mutant.setdefault("steps", next((steps for prefix, steps in CONCERNS if mutant["file"].startswith(prefix)), None))
        if args.one_program:
            laws = [("lib", [m for m in modules if m == "process::" or program == "lib" or m.split("::")[0] in ALONE])
                    for program, modules in mutant["steps"] if program != "program"]
            mutant["steps"] = [step for step in laws if step[1]]
    usual = {}

    def limit(step):
        """Processor time that tests may take; they must pass before anything is broken."""
        key = json.dumps(step)
        if key not in usual:
            code, usual[key], said = run(args, programs, step, 0, 600)
            print(f"{key}: {usual[key]:.1f} s", flush=True)
            if code != 0:
                sys.exit(said[-3000:] + f"\n{key} fails before anything is broken")
        return 5 * usual[key] + 5

    rows = {}
    for mutant in sample:
        name = mutant["name"]
        if mutant["number"] in broken:
            rows[name] = dict(name=name, outcome="does not compile", by=broken[mutant["number"]])
        else:
            rows[name] = known.get(name, dict(name=name, outcome="open", by=0))
    # All mutants against the quickest tests, then what is left against the next: in the order of the sample, of which a part is
    # a sample too.
    ends, writing = time.time() + 60 * args.minutes, threading.Lock()

    def ask(mutant, depth, most):
        row, step = rows[mutant["name"]], mutant["steps"][depth]
        if time.time() > ends:
            return
        code, _, said = run(args, programs, step, mutant["number"], most)
        if code != 0:
            first = re.search(r"^test (\S+) \.\.\. FAILED", said, re.M)
            by = f"{step[0]}::{first.group(1)}" if first else f"{step[0]} {' '.join(step[1])}: exit code {code}"
            row.update(outcome="timeout" if code == "timeout" else "killed", by=by)
            print(f"{row['outcome']}: {row['name']} ({by[:90]})", flush=True)
        elif depth + 1 == len(mutant["steps"]):
            row.update(outcome="survived", by="")
            print(f"survived: {row['name']}", flush=True)
        else:
            # So many of its steps it has passed.
            row["by"] = depth + 1
        with writing, args.table.open("w", newline="") as file:
            table = csv.DictWriter(file, ["name", "outcome", "by"])
            table.writeheader()
            table.writerows(rows.values())

    for depth in range(max(len(mutant["steps"]) for mutant in sample)):
        left = [m for m in sample if rows[m["name"]]["outcome"] == "open" and int(rows[m["name"]]["by"]) <= depth < len(m["steps"])]
        limits = [limit(m["steps"][depth]) for m in left if time.time() < ends]
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            # A fault in here is told.
            list(pool.map(lambda pair: ask(pair[0], depth, pair[1]), zip(left, limits)))
    rows = list(rows.values())
    count = lambda outcome: sum(row["outcome"] == outcome for row in rows)
    viable = len(rows) - count("does not compile") - count("open")
    caught = count("killed") + count("timeout")
    print(f"{len(rows)} mutants: {count('does not compile')} do not compile, {count('killed')} killed, {count('timeout')} ran out of time, "
          f"{count('survived')} survived, {count('open')} are open: {100 * caught / max(viable, 1):.1f} % of {viable}")
    return 0


if __name__ == "__main__":
    started = time.time()
    code = main()
    print(f"{time.time() - started:.0f} s", file=sys.stderr)
    sys.exit(code)
