"""Adds up the JUnit reports of a test run and prints the one closing line: tools/summary.py FOLDER.

A runner that ended without a report, or badly although nothing in its report failed, counts as one failure.
"""
import glob
import os
import sys
import xml.etree.ElementTree as ET


def count(path):
    passed, failed, skipped = 0, [], 0
    for case in ET.parse(path).getroot().iter("testcase"):
        name = f"{case.get('classname', '')}::{case.get('name', '')}"
        why = case.find("skipped")
        # ctest calls a test that could not be started "notrun" too; only one that asked to be skipped is.
        unstarted = case.get("status") == "notrun" and not (why is not None and why.get("message", "").startswith("SKIP_"))
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail" or unstarted:
            failed.append(name)
        elif why is not None or case.get("status") == "disabled":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(folder):
    passed, failed, skipped = 0, [], 0
    for rc_path in sorted(glob.glob(os.path.join(folder, "*.rc"))):
        runner = os.path.basename(rc_path)[:-3]
        with open(rc_path) as f:
            rc = int(f.read())
        try:
            p, bad, s = count(os.path.join(folder, runner + ".xml"))
        except (OSError, ET.ParseError) as e:
            p, bad, s = 0, [f"{runner}: no report (exit code {rc}): {e}"], 0
        if rc != 0 and not bad:
            bad = [f"{runner}: exit code {rc}"]
        passed, failed, skipped = passed + p, failed + bad, skipped + s
    print()
    for name in failed:
        print("FAILED", name)
    if skipped:
        print(f"({skipped} skipped)")
    print(f"{passed} passed, {len(failed)} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
