"""The benchmark behind scripts/bench-suites: suites of mocked plan runs, beside another program."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

MONOFORM = os.path.abspath(os.environ.get("MONOFORM", "target/release/monoform"))
PEER = os.environ.get("PEER", "terraform")
ROUNDS = int(os.environ.get("ROUNDS", "3"))
SIZES = [int(size) for size in sys.argv[1:]] or [100, 500]

MODULE = """
variable "n" {
  default = 3
}

resource "random_string" "a" {
  count  = var.n
  length = 8
}

resource "random_pet" "b" {
  length = var.n
}

locals {
  lengths = [for s in random_string.a : s.length]
}

output "lengths" {
  value = local.lengths
}
"""

RUN = """
run "r%d" {
  command = plan
  variables {
    n = %d
  }
  assert {
    condition     = length(output.lengths) == %d
    error_message = "Another number of objects."
  }
}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def suite(root, size):
    """Writes the module and its test file."""
    os.makedirs(root)
    write(os.path.join(root, "main.tf"), MODULE)
    runs = "".join(RUN % (i, i % 5 + 1, i % 5 + 1) for i in range(size))
    write(os.path.join(root, "main.tftest.hcl"), 'mock_provider "random" {}\n' + runs)


def run(program, root, environment, size):
    """Runs the suite; gives the seconds that it took, and the most memory of the core in MiB."""
    began = time.monotonic()
    child = subprocess.Popen([program, "test", "-no-color"], cwd=root, env=environment, stdout=subprocess.PIPE)
    text = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    taken = time.monotonic() - began
    child.returncode = status
    if f"Success! {size} passed, 0 failed." not in text:
        raise SystemExit(f"{program} does not pass the suite:\n{text}")
    return taken, usage.ru_maxrss / 1024


def main():
    peer = None if PEER == "none" else shutil.which(PEER)
    with tempfile.TemporaryDirectory() as work:
        environment = {**os.environ, "HOME": work, "TF_CLI_CONFIG_FILE": os.path.join(work, "rc")}
        mirror = os.path.join(work, "mirror")
        os.mkdir(mirror)
        write(environment["TF_CLI_CONFIG_FILE"], "")
        subprocess.run([MONOFORM, "internal-plugin", "link", mirror], check=True, stdout=subprocess.DEVNULL)
        write(
            environment["TF_CLI_CONFIG_FILE"],
            f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n',
        )
        # Built-in providers need neither mirror nor init.
        own = {**environment, "TF_CLI_CONFIG_FILE": os.path.join(work, "empty")}
        write(own["TF_CLI_CONFIG_FILE"], "")
        for size in SIZES:
            ours, theirs = os.path.join(work, f"ours-{size}"), os.path.join(work, f"theirs-{size}")
            suite(ours, size)
            best, memory = None, 0
            other, other_memory = None, 0
            if peer:
                suite(theirs, size)
                subprocess.run([peer, "init"], cwd=theirs, env=environment, check=True, stdout=subprocess.DEVNULL)
            for _ in range(ROUNDS):
                taken, used = run(MONOFORM, ours, own, size)
                best, memory = min(best or taken, taken), max(memory, used)
                if peer:
                    taken, used = run(peer, theirs, environment, size)
                    other, other_memory = min(other or taken, taken), max(other_memory, used)
            line = f"{size:6} runs: {best:.2f} s, {memory:.0f} MiB"
            if peer:
                line += f"; {os.path.basename(peer)} {other:.2f} s, {other_memory:.0f} MiB: {other / best:.1f} times"
            print(line, flush=True)


main()
