#!/usr/bin/env python3
"""A sample configuration names every option of its program, nothing else, and the program
takes it, with what is commented out made active.

usage: samples_test.py SAMPLE PROGRAM...
"""
import os
import re
import subprocess
import sys
import tempfile

NOT_IN_FILES = {"config", "dry-run", "help", "usage", "version"}
SETTING = re.compile(r"^#?(\w+) = .*;", re.M)


def main(sample, program):
    with open(sample) as f:
        text = f.read()
    told = subprocess.run(program + ["--help"], check=True, capture_output=True, text=True).stdout
    options = set(re.findall(r"--([a-z-]+)\b", "\n".join(re.findall(r"^ {2,6}.*", told, re.M))))
    options = {o.replace("-", "_") for o in options - NOT_IN_FILES}
    settings = set(SETTING.findall(text))
    assert settings == options, "in the sample only: %s; in --help only: %s" % (
        sorted(settings - options), sorted(options - settings))

    # Nothing of the sample exists here: it must be refused for that, not for its settings.
    with tempfile.TemporaryDirectory(prefix="kapok-test-") as folder:
        path = os.path.join(folder, "all.conf")
        with open(path, "w") as f:
            f.write(re.sub(r"^#(?=\w+ = )", "", text, flags=re.M).replace("/srv/", folder + "/")
                    .replace("/etc/", folder + "/").replace("/run/", folder + "/"))
        r = subprocess.run(program + ["--config", path], capture_output=True, text=True,
                           timeout=60)
    assert r.returncode != 0, r
    assert path not in r.stderr.replace("config=" + path, ""), r.stderr
    assert folder in r.stderr, "refused without naming what is missing: %s" % r.stderr


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
