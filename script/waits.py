"""Refuses tests that depend on time: sleeps, ports that are free by chance, and comparisons of durations.

An exception has its reason on its line (`# lint: why`, `// lint: why`). An exception in a helper counts once
for each call of the helper; a `wait` for less than a second is a sleep. The count must equal the ceiling in
Tests/waits.txt, which only falls. The polls of waiting.py and Waiting.swift are no exception: their limit means that
the test hangs. Option: --list prints the count of each file.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CEILING = ROOT / "Tests/waits.txt"
POLLS = (ROOT / "Tests/Support/waiting.py", ROOT / "Tests/Waiting/Waiting.swift")
REASON = re.compile(r"(#|//) lint: (?P<why>\S.*)")
CLOCKS = {"monotonic", "perf_counter", "monotonic_ns", "perf_counter_ns", "process_time"}
CALLS = {"sleep", "usleep", "free_port"}
# A `sleep` of another receiver is virtual time, and one behind `func` is declared.
SWIFT = re.compile(r"(?<!func )(?<![.\w])(usleep|nanosleep|sleep)\(|\.rest\(milliseconds|"
                   r"\b(Task(<.*>)?|Thread|ContinuousClock\(\)|SuspendingClock\(\))\.sleep\(|"
                   r"(\.now|[mM]onotonic\w*\(\)|nanoseconds\(\)) *- *[\w.]+\)* *[<>]|"
                   r"[<>]=? *(\.now|ContinuousClock\.now) *-")


def name_of(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def reads_clock(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return reads_clock(node.left) or reads_clock(node.right)
    return isinstance(node, ast.Call) and name_of(node.func) in CLOCKS


def is_duration(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and name_of(node.func) in ("abs", "float", "int", "max", "min", "round"):
        return any(is_duration(each) for each in node.args)
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and reads_clock(node)


class Python(ast.NodeVisitor):
    """The lines of a module that depend on time, each with the helper around it."""

    def __init__(self, text: str):
        self.found: list[tuple[int, str | None]] = []
        self.functions: list[ast.AST] = []
        self.durations: set[str] = set()
        self.visit(ast.parse(text))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.functions.append(node)
        self.generic_visit(node)
        self.functions.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.functions.append(node)
        self.generic_visit(node)
        self.functions.pop()

    def helper(self) -> str | None:
        """A pattern of the calls of the outermost function, or of the class of an initializer; none for a test."""
        functions = [each for each in self.functions if isinstance(each, ast.FunctionDef)]
        if not functions or any(each.name.startswith("test_") or each.decorator_list for each in functions):
            return None
        name, outer = functions[0].name, self.functions[0]
        if functions[0] is outer:
            return rf"(?<![.\w]){name}\("
        return rf"\b{outer.name}\(" if name == "__init__" else rf"\.{name}\("

    def add(self, node: ast.AST) -> None:
        self.found.append((node.lineno, self.helper()))

    def visit_Assign(self, node: ast.Assign) -> None:
        if is_duration(node.value):
            self.durations |= {name_of(target) for target in node.targets}
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        if any(reads_clock(side) or is_duration(side) or name_of(side) in self.durations - {""} for side in sides):
            self.add(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        paces = name_of(node.func) == "wait" and node.args and isinstance(node.args[0], ast.Constant) and \
            isinstance(node.args[0].value, (int, float)) and node.args[0].value < 1
        if name_of(node.func) in CALLS or paces:
            self.add(node)
        self.generic_visit(node)


def swift(text: str) -> list[tuple[int, str | None]]:
    found, lines, helper = [], text.splitlines(), None
    for number, line in enumerate(lines, 1):
        if declared := re.search(r"\bfunc (\w+)", line):
            is_test = any("@Test" in each for each in lines[max(0, number - 4):number])
            helper = None if is_test else rf"\b{declared[1]}\("
        if SWIFT.search(line.split(" // lint:")[0]) and not line.strip().startswith("//"):
            found.append((number, helper))
    return found


def count(path: pathlib.Path, texts: dict[pathlib.Path, str], complaints: list[str]) -> int:
    text, total = texts[path], 0
    lines = text.splitlines()
    found = Python(text).found if path.suffix == ".py" else swift(text)
    for number, helper in sorted(set(found)):
        reason = REASON.search(lines[number - 1])
        if reason and path in POLLS:
            continue
        if not reason:
            complaints.append(f"{path.relative_to(ROOT)}:{number}: wait for an event, or say why not (lint: why)")
        total += max(1, calls(helper, path, texts) if helper else 1)
    return total


def calls(helper: str, path: pathlib.Path, texts: dict[pathlib.Path, str]) -> int:
    """In the file of the helper, and in files that name its module or, in Swift, belong to it."""
    def is_near(other: pathlib.Path) -> bool:
        if path.suffix == ".swift":
            module = len(ROOT.parts) + 1
            return other.suffix == ".swift" and other.parts[module] == path.parts[module]
        return other == path or re.search(rf"^(from|import) {path.stem}\b", texts[other], re.M) is not None

    return sum(1 for other, text in texts.items() if is_near(other) for found in re.finditer(helper, text)
               if not re.search(r"(def|func) *$", text[:found.start()][-5:]))


def main() -> int:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "Tests").rglob("*"))
             if path.suffix in (".py", ".swift")}
    complaints: list[str] = []
    counts = {path: count(path, texts, complaints) for path in texts}
    total, ceiling = sum(counts.values()), int(CEILING.read_text())
    if "--list" in sys.argv:
        for path, number in sorted(counts.items(), key=lambda item: -item[1]):
            if number:
                print(f"{number:4} {path.relative_to(ROOT)}")
        print(f"{total:4} in all")
    for text in complaints:
        print(text, file=sys.stderr)
    if total > ceiling:
        print(f"{total} waits in tests; {CEILING.relative_to(ROOT)} allows {ceiling}", file=sys.stderr)
    if total < ceiling:
        print(f"{total} waits in tests: lower {CEILING.relative_to(ROOT)} from {ceiling}", file=sys.stderr)
    return 1 if complaints or total != ceiling else 0


if __name__ == "__main__":
    sys.exit(main())
