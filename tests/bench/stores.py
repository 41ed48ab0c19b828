"""The benchmark behind scripts/bench-stores: a large state through each store, under Monoform and a peer in one run."""

import base64
import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from email.utils import formatdate

MEGABYTES = int(sys.argv[1]) if len(sys.argv) > 1 else 50
ROOT = os.getcwd()
MONOFORM = os.environ.get("MONOFORM", os.path.join(ROOT, "target/release/monoform"))
PEER = os.environ.get("PEER", "terraform")
ROUNDS = int(os.environ.get("ROUNDS", "10"))

# Consul takes values of 512 KiB and 64 of them in one request of at most 512 KiB: more than some megabytes is slow. A cluster
# takes a megabyte a secret, and both programs write one after the other.
LIMITS = {"consul": 4, "kubernetes": 8}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Missing(Exception):
    """A program that a server needs is not there."""


def program(name):
    found = shutil.which(name)
    if not found:
        raise Missing(name)
    return found


@contextlib.contextmanager
def serving(command, port, **options):
    """A server for the time of a block; it ends by its own process ID."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        end = time.monotonic() + 60
        while True:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{command[0]} does not answer")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def ask(method, port, path, body=b"", headers=None):
    """A request; fails the run where the answer is no success."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body or None, headers or {}, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.read()


@contextlib.contextmanager
def pg(directory):
    # Debian has the programs of the server beside each other, and only some of them on the PATH.
    folder = os.path.dirname(os.path.realpath(program("postgres")))
    program("psql")
    root = os.geteuid() == 0
    prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if root else []
    if root:
        shutil.chown(directory, "postgres", "postgres")
    data, port = os.path.join(directory, "data"), free_port()
    initdb = [*prefix, os.path.join(folder, "initdb"), "-A", "trust", "-U", "me", "--no-sync", "-D", data]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=directory)
    server = [*prefix, os.path.join(folder, "postgres"), "-D", data, "-p", str(port), "-h", "127.0.0.1", "-F", "-k", directory]
    with serving(server, port, cwd=directory):
        for database in ("ours", "theirs"):
            create = ["psql", "-q", "-h", "127.0.0.1", "-U", "me", "-p", str(port), "-d", "postgres", "-c", f"CREATE DATABASE {database}"]
            for _ in range(100):
                if subprocess.run(create, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                    break
                time.sleep(0.1)
        yield lambda who: (f'conn_str = "postgres://me@127.0.0.1:{port}/{who}?sslmode=disable"', {})


@contextlib.contextmanager
def s3(directory):
    port = free_port()
    with serving([program("moto_server"), "-H", "127.0.0.1", "-p", str(port)], port):
        signed = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        ask("PUT", port, "/states", headers={"Authorization": signed})
        address = f"http://127.0.0.1:{port}"
        settings = (
            'bucket = "states"\nkey = "WHO"\nregion = "us-east-1"\nuse_path_style = true\nuse_lockfile = true\n'
            f'endpoints = {{ s3 = "{address}", sts = "{address}", iam = "{address}" }}'
        )
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}
        yield lambda who: (settings.replace("WHO", who), keys)


@contextlib.contextmanager
def gcs(directory):
    port = free_port()
    own = f"127.0.0.1:{port}"
    command = [program("fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-port", str(port)]
    with serving([*command, "-public-host", own, "-external-url", f"http://{own}"], port):
        ask("POST", port, "/storage/v1/b?project=p", b'{"name":"states"}', {"Content-Type": "application/json"})
        settings = f'bucket = "states"\naccess_token = "t"\nstorage_custom_endpoint = "http://{own}/storage/v1/"\nprefix = '
        yield lambda who: (f'{settings}"{who}"', {})


def tunnels(port):
    """A proxy that leads each connection to a port of this machine, whatever the name of the server; gives its own port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def lead(client):
        with client, socket.create_connection(("127.0.0.1", port)) as server:
            head = b""
            while b"\r\n\r\n" not in head:
                part = client.recv(4096)
                if not part:
                    return
                head += part
            client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=copy, args=(server, client), daemon=True)
            back.start()
            copy(client, server)
            back.join()

    def accept():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=lead, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


ACCOUNT = "teststates"
KEY = base64.b64encode(b"0123456789abcdef" * 4).decode()


def certificate(directory, name):
    """A certificate for a name, by the program openssl."""
    files = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
    command = [program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    names = ["-addext", f"subjectAltName=DNS:{name},DNS:login.microsoftonline.com,DNS:management.azure.com"]
    # The programs of the benchmark take it as a server's own certificate, not as an authority's.
    names += ["-addext", "basicConstraints=critical,CA:FALSE"]
    subprocess.run([*command, *names, "-out", files[0], "-keyout", files[1]], check=True, stderr=subprocess.DEVNULL)
    return files


@contextlib.contextmanager
def azurerm(directory):
    name, port = f"{ACCOUNT}.blob.core.windows.net", free_port()
    server = program("azurite-blob")
    cert, key = certificate(directory, name)
    command = [server, "--blobHost", "127.0.0.1", "--inMemoryPersistence", "--silent", "--skipApiVersionCheck"]
    command += ["--disableTelemetry", "--blobPort", str(port), "--cert", cert, "--key", key]
    environment = dict(os.environ, AZURITE_ACCOUNTS=f"{ACCOUNT}:{KEY}")
    with serving(command, port, env=environment, cwd=directory):
        make_container(port, name)
        reach = {"HTTPS_PROXY": f"http://127.0.0.1:{tunnels(port)}", "NO_PROXY": "", "SSL_CERT_FILE": cert}
        settings = f'storage_account_name = "{ACCOUNT}"\ncontainer_name = "states"\naccess_key = "{KEY}"\nkey = '
        yield lambda who: (f'{settings}"{who}"', reach)


def make_container(port, host):
    """Makes the container, with a request that is signed by the key of the account."""
    import ssl

    own = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2023-11-03"}
    lines = ["PUT", *[""] * 11, *[f"{k}:{v}" for k, v in own.items()], f"/{ACCOUNT}/states", "restype:container"]
    digest = hmac.new(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    own |= {"Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}", "Host": host, "Content-Length": "0"}
    # It is the emulator that was just started here.
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
    connection.request("PUT", "/states?restype=container", headers=own)
    answer = connection.getresponse()
    if answer.status != 201:
        sys.exit(f"the container cannot be made: {answer.status} {answer.read().decode()}")


@contextlib.contextmanager
def consul(directory):
    port = free_port()
    command = [program("consul"), "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-dns-port=-1", "-grpc-port=-1"]
    command += [f"-http-port={port}", *(f"-{name}-port={free_port()}" for name in ("serf-lan", "serf-wan", "server"))]
    with serving(command, port):
        for _ in range(600):
            with contextlib.suppress(OSError):
                if ask("PUT", port, "/v1/kv/ready", b"1").strip() == b"true":
                    break
            time.sleep(0.1)
        yield lambda who: (f'address = "127.0.0.1:{port}"\npath = "{who}"\ngzip = true', {})


class Cluster(http.server.BaseHTTPRequestHandler):
    """Secrets and leases, as far as the two programs ask for them."""

    protocol_version = "HTTP/1.1"
    objects = {}
    lock = threading.Lock()
    version = 0

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, status, reason):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": reason})

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        found = re.search(r"/namespaces/default/(secrets|leases)(?:/([^/]+))?$", url.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        if not found:
            return self.refuse(404, "NotFound")
        kind, name = found.groups()
        with Cluster.lock:
            return self.change(kind, name, body, urllib.parse.parse_qs(url.query))

    def change(self, kind, name, body, query):
        objects = Cluster.objects
        if self.command == "GET" and not name:
            wanted = dict(part.split("=", 1) for part in query.get("labelSelector", [""])[0].replace("==", "=").split(",") if "=" in part)
            items = [o for (k, _), o in objects.items() if k == kind and wanted.items() <= o["metadata"].get("labels", {}).items()]
            list_kind = "SecretList" if kind == "secrets" else "LeaseList"
            return self.answer(200, {"kind": list_kind, "apiVersion": items[0]["apiVersion"] if items else "v1", "metadata": {}, "items": items})
        name = name or body["metadata"]["name"]
        there = objects.get((kind, name))
        if self.command == "POST" and there:
            return self.refuse(409, "AlreadyExists")
        if self.command != "POST" and not there:
            return self.refuse(404, "NotFound")
        if self.command == "GET":
            return self.answer(200, there)
        if self.command == "DELETE":
            del objects[kind, name]
            return self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})
        asked = body["metadata"].get("resourceVersion")
        if self.command == "PUT" and asked and asked != there["metadata"]["resourceVersion"]:
            return self.refuse(409, "Conflict")
        Cluster.version += 1
        body["metadata"] |= {"resourceVersion": str(Cluster.version), "namespace": "default", "uid": f"uid-{name}"}
        body.setdefault("apiVersion", "v1" if kind == "secrets" else "coordination.k8s.io/v1")
        body.setdefault("kind", "Secret" if kind == "secrets" else "Lease")
        objects[kind, name] = body
        return self.answer(201 if self.command == "POST" else 200, body)

    do_GET = do_POST = do_PUT = do_DELETE = handle_request


@contextlib.contextmanager
def kubernetes(directory):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cluster)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        path = os.path.join(directory, "config")
        named = {"clusters": {"cluster": {"server": f"http://127.0.0.1:{server.server_address[1]}"}}}
        named |= {"users": {"user": {"token": "t"}}, "contexts": {"context": {"cluster": "here", "user": "here"}}}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "here"}
        with open(path, "w") as file:
            json.dump(config | {kind: [{"name": "here", **value}] for kind, value in named.items()}, file)
        yield lambda who: (f'secret_suffix = "{who}"\nnamespace = "default"\nconfig_path = "{path}"', {})
    finally:
        server.shutdown()


STORES = {"pg": pg, "s3": s3, "gcs": gcs, "azurerm": azurerm, "consul": consul, "kubernetes": kubernetes}


def peak(pid, stop, found):
    """Follows the memory of a process and all that it has started: the largest sum of resident sizes that is seen, in MiB."""
    page = os.sysconf("SC_PAGE_SIZE")
    while not stop.is_set():
        parents, sizes = {}, {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    with open(f"/proc/{entry}/stat") as stat:
                        fields = stat.read().rsplit(")", 1)[1].split()
                    parents[int(entry)], sizes[int(entry)] = int(fields[1]), int(fields[21]) * page
        family = {pid}
        grown = True
        while grown:
            more = {p for p, parent in parents.items() if parent in family} - family
            family |= more
            grown = bool(more)
        found[0] = max(found[0], sum(sizes.get(p, 0) for p in family) / 2**20)
        stop.wait(0.02)


def run(executable, directory, environment, *arguments):
    """Runs a command; gives its wall time in seconds, and the largest memory of it and its plugins together in MiB."""
    everything = dict(os.environ, HOME=directory, CHECKPOINT_DISABLE="1", TF_IN_AUTOMATION="1", **environment)
    everything.pop("TF_CLI_CONFIG_FILE", None)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as problems:
        start = time.monotonic()
        process = subprocess.Popen([executable, *arguments], cwd=directory, env=everything, stdout=output, stderr=problems)
        stop, found = threading.Event(), [0.0]
        watcher = threading.Thread(target=peak, args=(process.pid, stop, found))
        watcher.start()
        status = process.wait()
        elapsed = time.monotonic() - start
        stop.set()
        watcher.join()
        if status != 0:
            problems.seek(0)
            sys.exit(f"{executable} {' '.join(arguments)} failed:\n{problems.read()[-4000:].decode()}")
    return elapsed, found[0]


def large_state(megabytes):
    """The text of a state of about this size, which does not compress well."""
    source = random.Random(megabytes)
    outputs = {f"o{n}": {"value": source.randbytes(50_000).hex(), "type": "string"} for n in range(megabytes * 10)}
    lineage = "3f0b9f4c-6d6c-4f57-9a7e-0d6f3a1b2c4d"
    return json.dumps({"version": 4, "terraform_version": "1.5.0", "serial": 1, "lineage": lineage, "outputs": outputs, "resources": []})


def directory_with(where, store, settings, more=""):
    os.makedirs(where)
    with open(os.path.join(where, "main.tf"), "w") as file:
        file.write(f'terraform {{\n  backend "{store}" {{\n{settings}\n  }}\n}}\n{more}')
    return where


def through(store, place, executable, who, parent, megabytes):
    """Time and memory of a push, of a pull, and of a plan."""
    settings, environment = place(who)
    where = directory_with(os.path.join(parent, who), store, settings)
    with open(os.path.join(where, "large.tfstate"), "w") as file:
        file.write(large_state(megabytes))
    run(executable, where, environment, "init", "-input=false", "-no-color")
    push = run(executable, where, environment, "state", "push", "large.tfstate")
    pull = run(executable, where, environment, "state", "pull")
    plan = run(executable, where, environment, "plan", "-no-color", "-input=false")
    return {"push": push, "pull": pull, "plan": plan}


def starts(place, executable, who, parent):
    """The median time of a plan of almost nothing, its state in s3."""
    settings, environment = place(who)
    where = directory_with(os.path.join(parent, who), "s3", settings, 'resource "terraform_data" "a" {}\n')
    run(executable, where, environment, "init", "-input=false", "-no-color")
    run(executable, where, environment, "apply", "-auto-approve", "-no-color")
    return statistics.median(run(executable, where, environment, "plan", "-no-color")[0] for _ in range(ROUNDS))


def compared(store, parent):
    megabytes = min(MEGABYTES, LIMITS.get(store, MEGABYTES))
    server = os.path.join(parent, store)
    os.mkdir(server)
    with STORES[store](server) as place, tempfile.TemporaryDirectory() as work:
        ours = through(store, place, MONOFORM, "ours", work, megabytes)
        theirs = through(store, place, PEER, "theirs", work, megabytes) if PEER != "none" else {}
        for step, (seconds, memory) in ours.items():
            line = f"{store:11} {megabytes:3} MB {step}: {seconds:7.2f} s {memory:6.0f} MiB"
            if theirs:
                other_seconds, other_memory = theirs[step]
                line += f"   {PEER}: {other_seconds:7.2f} s {other_memory:6.0f} MiB"
                line += f"   ratio: time {seconds / other_seconds:.2f}, memory {memory / other_memory:.2f}"
            print(line, flush=True)
        if store == "s3":
            ours = starts(place, MONOFORM, "ours-small", work)
            line = f"start of a plan with s3, median of {ROUNDS}: {ours:.3f} s"
            if PEER != "none":
                theirs = starts(place, PEER, "theirs-small", work)
                line += f"   {PEER}: {theirs:.3f} s   ratio: {ours / theirs:.2f}"
            print(line, flush=True)


def main():
    if not os.access(MONOFORM, os.X_OK):
        sys.exit(f"{MONOFORM} is not there: cargo build --release, or say where it is by MONOFORM")
    if PEER != "none" and not shutil.which(PEER):
        sys.exit(f'{PEER} is not on the PATH: install it, or PEER=none')
    wanted = os.environ.get("STORES", " ".join(STORES)).split()
    unknown = set(wanted) - set(STORES)
    if unknown:
        sys.exit(f"no such store: {', '.join(sorted(unknown))}; there are {', '.join(STORES)}")
    # PostgreSQL's server is another user where this one is root.
    with tempfile.TemporaryDirectory() as parent:
        os.chmod(parent, 0o755)
        for store in wanted:
            try:
                compared(store, parent)
            except Missing as missing:
                print(f"{store:11} skipped: {missing} is not on the PATH", flush=True)


main()
