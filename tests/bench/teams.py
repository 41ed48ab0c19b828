"""The benchmark behind scripts/bench-teams: one state in PostgreSQL that many runs change, and a plan of one change in a large state."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = os.getcwd()
MONOFORM = os.environ.get("MONOFORM", os.path.join(ROOT, "target/release/monoform"))
PEERS = os.environ.get("PEERS", "terraform tofu").split()
OBJECTS = int(os.environ.get("OBJECTS", "10000"))
LARGE = int(os.environ.get("LARGE", "100000"))
RUNS = [int(number) for number in os.environ.get("RUNS", "2 20").split()]
PARTS = sys.argv[1:] or ["applies", "plan"]

CONFIGURATION = """
variable "words" {
  type    = map(string)
  default = {}
}
resource "terraform_data" "part" {
  count = %d
  input = lookup(var.words, tostring(count.index), "same")
}
"""

LAYOUTS = {"objects": '\n    layout = "objects"', "default": ""}
LAYOUTS["copy"] = LAYOUTS["objects"] + "\n    local_copy = true"


class Database:
    """A server of its own, with a database for each measurement."""

    def __init__(self, directory):
        self.port = free_port()
        self.directory = directory
        self.count = 0

    def sql(self, database, statement):
        command = ["psql", "-qtA", "-h", "127.0.0.1", "-U", "me", "-p", str(self.port), "-d", database, "-c", statement]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def create(self):
        self.count += 1
        name = f"states{self.count}"
        self.sql("postgres", f"CREATE DATABASE {name}")
        return name


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def server(directory):
    folder = os.path.dirname(os.path.realpath(shutil.which("postgres") or sys.exit("postgres is not on the PATH")))
    root = os.geteuid() == 0
    prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if root else []
    if root:
        shutil.chown(directory, "postgres", "postgres")
    database = Database(directory)
    data = os.path.join(directory, "data")
    initdb = [*prefix, os.path.join(folder, "initdb"), "-A", "trust", "-U", "me", "--no-sync", "-E", "UTF8", "--locale=C", "-D", data]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=directory)
    command = [*prefix, os.path.join(folder, "postgres"), "-D", data, "-p", str(database.port), "-h", "127.0.0.1", "-k", directory]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory)
    try:
        for _ in range(600):
            with contextlib.suppress(RuntimeError):
                database.sql("postgres", "SELECT 1")
                break
            time.sleep(0.1)
        yield database
    finally:
        process.terminate()
        process.wait()


class Relay:
    """A proxy before the server that counts the bytes which the server sends."""

    def __init__(self, port):
        import threading

        self.target = port
        self.bytes = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        import threading

        while True:
            client, _ = self.listener.accept()
            other = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self.copy, args=(client, other, False), daemon=True).start()
            threading.Thread(target=self.copy, args=(other, client, True), daemon=True).start()

    def copy(self, one, other, counts):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 18):
                if counts:
                    self.bytes += len(data)
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_WR)


def environment(directory):
    settings = {"HOME": directory, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    return dict(kept, **settings)


def start(executable, directory, *arguments):
    return subprocess.Popen(
        [executable, *arguments],
        cwd=directory,
        env=environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(executable, directory, *arguments):
    command = [executable, *arguments]
    done = subprocess.run(command, cwd=directory, env=environment(directory), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{executable} {' '.join(arguments)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def state(count):
    value = {"value": "same", "type": "string"}
    instances = [
        {
            "index_key": index,
            "schema_version": 0,
            "attributes": {"id": str(uuid.uuid4()), "input": value, "output": value, "triggers_replace": None},
            "sensitive_attributes": [],
        }
        for index in range(count)
    ]
    resource = {"mode": "managed", "type": "terraform_data", "name": "part", "instances": instances}
    resource["provider"] = 'provider["terraform.io/builtin/terraform"]'
    head = {"version": 4, "terraform_version": "1.5.0", "serial": 1, "lineage": str(uuid.uuid4()), "outputs": {}}
    return json.dumps({**head, "resources": [resource], "check_results": None})


def directory_for(parent, executable, port, database, layout, count):
    directory = tempfile.mkdtemp(dir=parent)
    address = f"postgres://me@127.0.0.1:{port}/{database}?sslmode=disable"
    with open(os.path.join(directory, "main.tf"), "w") as file:
        file.write(f'terraform {{\n  backend "pg" {{\n    conn_str = "{address}"{LAYOUTS[layout]}\n  }}\n}}\n')
        file.write(CONFIGURATION % count)
    run(executable, directory, "init", "-input=false", "-no-color")
    return directory


def filled(parent, executable, port, database, layout, count):
    """A working directory whose state has so many objects."""
    directory = directory_for(parent, executable, port, database, layout, count)
    path = os.path.join(directory, "pushed.tfstate")
    with open(path, "w") as file:
        file.write(state(count))
    run(executable, directory, "state", "push", path)
    os.remove(path)
    return directory


def words(directory, executable):
    """The values of the objects that are not the first ones."""
    pulled = json.loads(run(executable, directory, "state", "pull"))
    instances = [instance for resource in pulled["resources"] for instance in resource["instances"]]
    values = {instance["index_key"]: instance["attributes"]["input"]["value"] for instance in instances}
    return len(values), {key: value for key, value in values.items() if value != "same"}


def applies(parent, database, name, executable, layout, runs, overlapping):
    base = database.create()
    first = filled(parent, executable, database.port, base, layout, OBJECTS)
    others = [directory_for(parent, executable, database.port, base, layout, OBJECTS) for _ in range(runs - 1)]
    directories = [first, *others]
    began = time.monotonic()
    processes = []
    for number, directory in enumerate(directories):
        index = 0 if overlapping else number
        variable = "-var=words=" + json.dumps({str(index): f"run{number}"})
        target = f"-target=terraform_data.part[{index}]"
        more = ["apply", "-auto-approve", "-input=false", "-no-color", "-refresh=false", "-lock-timeout=3600s"]
        processes.append(start(executable, directory, *more, variable, target))
    waits, failed, ends = 0, [], []
    import concurrent.futures

    def follow(process):
        output, _ = process.communicate()
        return process.returncode, output, time.monotonic() - began

    with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
        for code, output, end in pool.map(follow, processes):
            waits += "Acquiring state lock" in output
            ends.append(end)
            if code != 0:
                failed.append(output)
    count, changed = words(first, executable)
    if overlapping:
        lost = 0 if count == OBJECTS and set(changed) == {0} and changed[0].startswith("run") else 1
    else:
        expected = {number: f"run{number}" for number in range(runs)}
        lost = OBJECTS - count + sum(changed.get(key) != value for key, value in expected.items())
    kind = "one object" if overlapping else "different objects"
    line = f"{name:22} {runs:2} applies, {kind:17}: {max(ends):7.1f} s, first after {min(ends):6.1f} s, {waits:2} waited, "
    print(f"{line}{len(failed)} failed, {lost} lost", flush=True)
    for output in failed[:1]:
        print(output[-1500:], flush=True)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def plan(parent, database, name, executable, layout, more):
    base = database.create()
    first = filled(parent, executable, database.port, base, layout, LARGE)
    relay = Relay(database.port)
    directory = directory_for(parent, executable, relay.port, base, layout, LARGE)
    read = "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_user_tables"
    for attempt in ("first plan", "next plan"):
        rows, relay.bytes, began = int(database.sql(base, read)), 0, time.monotonic()
        output = run(executable, directory, "plan", "-input=false", "-no-color", '-var=words={"7"="other"}', *more)
        seconds = time.monotonic() - began
        if "1 to change" not in output:
            sys.exit(f"{name}: the plan has not one change:\n{output[-2000:]}")
        sent = relay.bytes
        # The statistics of a session are complete when it has ended.
        time.sleep(2)
        rows = int(database.sql(base, read)) - rows
        line = f"{name:22} {attempt} of one change in {LARGE} objects: {seconds:6.1f} s, {sent / 2**20:8.2f} MiB from the server"
        print(f"{line}, {rows} rows read", flush=True)
    for used in (first, directory):
        shutil.rmtree(used, ignore_errors=True)


def main():
    if not os.access(MONOFORM, os.X_OK):
        sys.exit(f"{MONOFORM} is not there: cargo build --release, or say where it is by MONOFORM")
    subjects = [("monoform, objects", MONOFORM, "objects"), ("monoform, default", MONOFORM, "default")]
    for peer in PEERS:
        found = shutil.which(peer)
        if not found:
            print(f"{peer} is not on the PATH and is left out", flush=True)
            continue
        subjects.append((os.path.basename(peer), found, "default"))
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        home = os.path.join(parent, "server")
        os.mkdir(home)
        with server(home) as database:
            if "applies" in PARTS:
                for runs in RUNS:
                    for overlapping in (False, True):
                        for name, executable, layout in subjects:
                            applies(parent, database, name, executable, layout, runs, overlapping)
            if "plan" in PARTS:
                with_copy = [("monoform, local_copy", MONOFORM, "copy")]
                for name, executable, layout in with_copy + subjects:
                    more = ["-refresh=changed"] if executable == MONOFORM else ["-refresh=false"]
                    plan(parent, database, name, executable, layout, more)


main()
