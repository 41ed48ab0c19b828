"""The benchmark behind scripts/bench-packs: the same providers in a pack, in a mirror directory, and in another program's plugin cache:
how large they are, how long a plan takes, and the memory that it needs."""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MONOFORM = os.environ.get("MONOFORM", os.path.join(os.getcwd(), "target/release/monoform"))
OTHER = sys.argv[1] if len(sys.argv) > 1 else shutil.which("terraform")
ROUNDS = int(os.environ.get("ROUNDS", "10"))
PROVIDERS = os.environ.get("PROVIDERS", "null random time local").split()
USED = os.environ.get("USED", " ".join(PROVIDERS)).split()
INSTANCES = int(os.environ.get("INSTANCES", "10"))

RESOURCES = {
    "null": 'resource "null_resource" "a" {\n  count = COUNT\n}\n',
    "random": 'resource "random_pet" "a" {\n  count = COUNT\n}\n',
    "time": 'resource "time_static" "a" {\n  count = COUNT\n}\n',
    "local": 'resource "local_file" "a" {\n  count    = COUNT\n  filename = "out-${count.index}"\n  content  = "x"\n}\n',
}


def platform():
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    return f"{os.uname().sysname.lower()}_{machine}"


def configuration():
    """The providers are those of a third party: what is built in needs neither pack nor mirror."""
    lines = "".join(f'    {name} = {{\n      source = "example.com/acme/{name}"\n    }}\n' for name in USED)
    blocks = "".join(RESOURCES[name].replace("COUNT", str(INSTANCES)) for name in USED)
    return f"terraform {{\n  required_providers {{\n{lines}  }}\n}}\n{blocks}"


def size(path):
    """Bytes of a file, or of all files below a directory."""
    path = pathlib.Path(path)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files)


def run(command, directory, **variables):
    """Seconds, and MiB of the largest process among it and what it has started."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory / "home"), "CHECKPOINT_DISABLE": "1", **variables}
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        if done.returncode not in (0, 2):
            sys.stderr.write(done.stdout + done.stderr)
        os.write(write, f"{done.returncode} {seconds} {kilobytes}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        code, seconds, kilobytes = answer.read().split()
    os.waitpid(child, 0)
    if int(code) not in (0, 2):
        raise SystemExit(f"{command} has failed")
    return float(seconds), float(kilobytes) / 1024


def directory(base, name):
    made = base / name
    (made / "home").mkdir(parents=True)
    (made / "main.tf").write_text(configuration())
    return made


def main():
    with tempfile.TemporaryDirectory() as temporary:
        base = pathlib.Path(temporary)
        mirror = base / "mirror"
        for name in PROVIDERS:
            package = mirror / "example.com/acme" / name / "1.0.0" / platform()
            package.mkdir(parents=True)
            provider = package / f"terraform-provider-{name}_v1.0.0"
            shutil.copy(MONOFORM, provider)
            # Equal contents are in a pack once, and those of different providers are not equal.
            with provider.open("ab") as file:
                file.write(name.encode())
        config = base / "mirror.tfrc"
        config.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n')
        make = directory(base, "make")
        pack = base / "pack"
        every = [f"-provider=example.com/acme/{name}" for name in PROVIDERS]
        seconds, _ = run([MONOFORM, "pack", f"-out={pack}", *every], make, TF_CLI_CONFIG_FILE=str(config))
        print(f"{len(PROVIDERS)} providers, {size(mirror) / 1e6:.1f} MB; a pack of them was made in {seconds:.2f} s\n")

        cases = {}
        work = directory(base, "with-pack")
        cases["pack"] = (size(pack), work, [str(pack), "plan"], {})
        work = directory(base, "with-pack-and-lock")
        run([str(pack), "init"], work)
        cases["pack, lock file"] = (size(pack), work, [str(pack), "plan"], {})
        work = directory(base, "from-memory")
        cases["pack, from memory"] = (size(pack), work, [str(pack), "plan"], {"MONOFORM_UNPACK_DIR": "none"})
        work = directory(base, "with-mirror")
        variables = {"TF_CLI_CONFIG_FILE": str(config)}
        run([MONOFORM, "init"], work, **variables)
        cases["mirror, lock file"] = (size(MONOFORM) + size(mirror), work, [MONOFORM, "plan"], variables)
        if OTHER:
            work = directory(base, "with-cache")
            cache = base / "cache"
            cache.mkdir()
            variables = {**variables, "TF_PLUGIN_CACHE_DIR": str(cache)}
            run([OTHER, "init"], work, **variables)
            label = f"{os.path.basename(OTHER)}, cache and lock"
            cases[label] = (size(OTHER) + size(mirror), work, [OTHER, "plan"], variables)

        first = {label: run(command, work, **variables)[0] for label, (_, work, command, variables) in cases.items()}
        rows = {label: [] for label in cases}
        for _ in range(ROUNDS):
            for label, (_, work, command, variables) in cases.items():
                rows[label].append(run(command, work, **variables))
        print(f"{'':24} {'to carry':>12} {'first plan':>12} {'plan':>12} {'memory':>12}   median of {ROUNDS}")
        for label, (carried, *_rest) in cases.items():
            seconds, memory = (statistics.median(column) for column in zip(*rows[label]))
            print(f"{label:24} {carried / 1e6:9.1f} MB {first[label]:10.2f} s {seconds * 1000:9.1f} ms {memory:8.1f} MiB")


main()
