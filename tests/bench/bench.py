"""The benchmark behind scripts/bench: generated configurations, timed under Monoform and a peer in one run."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

SIZES = [int(a) for a in sys.argv[1:]] or [1000, 4000]
ROOT = os.getcwd()
MONOFORM = os.environ.get("MONOFORM", os.path.join(ROOT, "target/release/monoform"))
PEER = os.environ.get("PEER", "terraform")

WORKLOADS = {
    # Every instance has an input of its own.
    "plain": """
resource "terraform_data" "a" {{
  count = {n}
  input = "value ${{count.index}}"
}}
""",
    # Half of the instances refer to the other half by index.
    "linked": """
resource "terraform_data" "a" {{
  count = {half}
  input = "value ${{count.index}}"
}}

resource "terraform_data" "b" {{
  count = {half}
  input = terraform_data.a[count.index].output
}}
""",
}


def run(program, directory, *arguments):
    """Runs a command; gives its wall time in seconds and the largest resident size of it or a plugin of it, in MiB."""
    environment = dict(os.environ, HOME=directory, CHECKPOINT_DISABLE="1", TF_IN_AUTOMATION="1")
    environment.pop("TF_CLI_CONFIG_FILE", None)
    with tempfile.TemporaryFile() as output:
        start = time.monotonic()
        process = subprocess.Popen([program, *arguments], cwd=directory, env=environment, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
        elapsed = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            sys.exit(f"{program} {' '.join(arguments)} failed:\n{output.read()[-4000:].decode()}")
    return elapsed, used.ru_maxrss / 1024


def measure(program, text):
    """The times of apply and of a plan without changes, and the peak memory."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "main.tf"), "w") as file:
            file.write(text)
        if os.path.basename(program) == "terraform" or os.path.basename(program) == "tofu":
            run(program, directory, "init", "-no-color")
        apply, _ = run(program, directory, "apply", "-auto-approve", "-no-color")
        plan, peak = run(program, directory, "plan", "-no-color", "-detailed-exitcode")
        return apply, plan, peak


def main():
    if not os.path.exists(MONOFORM):
        sys.exit(f"{MONOFORM} does not exist: build it with cargo build --release")
    peer = None if PEER == "none" else shutil.which(PEER)
    if peer is None:
        print(f"no {PEER} on the PATH: only Monoform is timed")
    for name, template in WORKLOADS.items():
        previous = None
        print(f"\n{name}: apply and re-plan, seconds")
        print(f"{'instances':>10} {'apply':>8} {'plan':>8} {'peak MiB':>9}" + (f" {'peer apply':>11} {'peer plan':>10} {'ratio':>15}" if peer else ""))
        for n in SIZES:
            text = template.format(n=n, half=n // 2)
            apply, plan, peak = measure(MONOFORM, text)
            line = f"{n:>10} {apply:>8.2f} {plan:>8.2f} {peak:>9.0f}"
            if peer:
                peer_apply, peer_plan, _ = measure(peer, text)
                line += f" {peer_apply:>11.2f} {peer_plan:>10.2f} {peer_apply / apply:>6.0f}x {peer_plan / plan:>6.0f}x"
            print(line, flush=True)
            if previous:
                size, a, p = previous
                print(f"           growth from {size}: {n / size:.1f} times the instances, apply {apply / a:.1f}, plan {plan / p:.1f}")
            previous = (n, apply, plan)


main()
