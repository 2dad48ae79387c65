"""Rules about the source that a compiler does not know. Prints what breaks one; exit status 1 when anything does.

  arrows     includes of src/ point down: base < pjrt, cache, hlo < ops < runtime (hlo and ops never see pjrt or cache)
  shim       sees include/tt, itself, PyTorch and the standard library, nothing of src/
  calls      no raw malloc, free, abort, exit, printf in src/ outside base/alloc.c and base/status.c; rt_log may print
  size       no source file over 900 lines
  headers    each header of include/tt compiles alone, as C11 and as C++17
  paths      no path of one machine's folders in a tracked file
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# For each folder of src/, the folders it may include besides itself.
BELOW = {
    "base": (),
    "pjrt": ("base",),
    "cache": ("base",),
    "hlo": ("base",),
    "ops": ("base", "hlo"),
}
RAW_CALLS = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|abort|exit|_exit|printf|puts|fprintf|vfprintf)\s*\(")
RAW_ALLOWED = {
    "src/base/alloc.c": {"realloc", "free"},  # the one way to memory
    "src/base/status.c": {"malloc", "free"},  # errors must not depend on hooks that make allocations fail
    "src/pjrt/plugin.c": {"free"},  # realpath's result
    "src/pjrt/load.c": {"_exit"},  # of the forked child that tries a library first
}
MACHINE_PATH = re.compile(r"(?<![\w/.])/(?:home|root|Users|work|workspace|mnt)/\w")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
problems = []


def report(path, line, text):
    problems.append(f"{path}:{line}: {text}")


def files(*folders, ext=(".c", ".h", ".cpp")):
    for folder in folders:
        for base, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(ext):
                    yield os.path.relpath(os.path.join(base, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def blank(match):
    """Comments and strings as spaces, so that line numbers stay."""
    return re.sub(r"[^\n]", " ", match.group())


def includes(text):
    for n, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if m:
            yield n, m.group(1)


def check_arrows():
    for path in files("src"):
        layer = path.split(os.sep)[1]
        for n, target in includes(read(path)):
            folder = target.split("/")[0]
            if "/" not in target or folder in (layer, "tt"):
                continue
            if folder == "python" or folder == "shim" or not os.path.isdir(os.path.join(ROOT, "src", folder)):
                report(path, n, f'"{target}" is not part of the core')
            elif layer in BELOW and folder not in BELOW[layer]:
                report(path, n, f"{layer}/ may not include {folder}/: arrows point down")
    for path in files("include"):
        for n, target in includes(read(path)):
            if not target.startswith("tt/"):
                report(path, n, f'a public header includes "{target}"')
    for path in files("shim"):
        for n, target in includes(read(path)):
            if not target.startswith("tt/") and not os.path.exists(os.path.join(ROOT, "shim", target)):
                report(path, n, f'the shim may not include "{target}"')


def check_calls():
    for path in files("src"):
        text = COMMENT_OR_STRING.sub(blank, read(path))
        if path == "src/runtime/runtime.c":
            text = re.sub(r"\nvoid rt_log\(.*?\n}\n", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
        allowed = RAW_ALLOWED.get(path, set())
        for m in RAW_CALLS.finditer(text):
            if m.group(1) not in allowed:
                report(path, text.count("\n", 0, m.start()) + 1, f"raw {m.group(1)}(): see base/alloc.h, base/status.h, rt_log")


def check_size():
    for path in files("src", "shim", "include", "test", "tools", "examples", "python", "bench", ext=(".c", ".h", ".cpp", ".py")):
        n = read(path).count("\n")
        if n > 900:
            report(path, n, f"{n} lines; 900 is the limit: split it")


def check_headers():
    cc, cxx = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
    for compiler, name, flags in ((cc, "one.c", ["-std=c11"]), (cxx, "one.cpp", ["-std=c++17"])):
        if not shutil.which(compiler):
            report("include/tt", 1, f"no compiler {compiler}")
            continue
        with tempfile.TemporaryDirectory() as tmp:
            for path in files("include", ext=(".h",)):
                source = os.path.join(tmp, name)
                header = os.path.relpath(path, "include")
                with open(source, "w") as f:
                    f.write(f'#include "{header}"\n#include "{header}"\n')
                run = subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", "-I",
                                      os.path.join(ROOT, "include"), source], capture_output=True, text=True)
                if run.returncode:
                    report(path, 1, f"does not compile alone with {compiler}:\n{run.stderr}")


def check_paths():
    run = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    tracked = run.stdout.splitlines() if run.returncode == 0 else list(files("src", "shim", "include", "test", "tools", "python"))
    for path in tracked:
        try:
            text = read(path)
        except (UnicodeDecodeError, OSError):
            continue
        for n, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                report(path, n, f"a path of one machine: {line.strip()[:100]}")


def main():
    for check in (check_arrows, check_calls, check_size, check_headers, check_paths):
        check()
    for p in problems:
        print(p)
    print(f"{len(problems)} problems" if problems else "lint: nothing to say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
