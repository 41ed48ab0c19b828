"""The benchmark behind scripts/bench-plugins: how long plugin processes take to answer their first call, and their memory."""

import os
import socket
import statistics
import struct
import subprocess
import sys
import time

MONOFORM = os.environ.get("MONOFORM", os.path.join(os.getcwd(), "target/release/monoform"))
ROUNDS = int(os.environ.get("ROUNDS", "20"))
OTHERS = sys.argv[1] if len(sys.argv) > 1 else None

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": os.environ.get("HOME", "/"),
    "TF_PLUGIN_MAGIC_COOKIE": "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
    "PLUGIN_PROTOCOL_VERSIONS": "5",
}

DATA, HEADERS, SETTINGS, END_STREAM, END_HEADERS = 0, 1, 4, 1, 4


def frame(kind, flags, stream, payload=b""):
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request():
    """A call without arguments, as HTTP/2 carries it: headers as plain literals, then an empty message."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": "/tfplugin5.Provider/GetSchema",
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    block = b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in fields.items()
    )
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(SETTINGS, 0, 0)
        + frame(HEADERS, END_HEADERS, 1, block)
        + frame(DATA, END_STREAM, 1, b"\0\0\0\0\0")
    )


def call(path):
    """Makes the call; gives the number of bytes of the answer."""
    size = 0
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(path)
        stream.sendall(request())
        with stream.makefile("rb") as answer:
            while True:
                head = answer.read(9)
                if len(head) < 9:
                    raise SystemExit("the plugin hung up")
                length, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
                payload = answer.read(length)
                if kind == SETTINGS and not flags & 1:
                    stream.sendall(frame(SETTINGS, 1, 0))
                elif kind == DATA:
                    size += len(payload)
                elif kind == HEADERS and flags & END_STREAM:
                    return size


def resident(pid):
    """KiB of memory that are resident, and those of them that no other process can share."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0]), int(fields["RssAnon"].split()[0])


def start(command):
    """Milliseconds to the handshake and to the answer, and memory."""
    begin = time.perf_counter()
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        line = process.stdout.readline().decode()
        handshake = time.perf_counter()
        fields = line.split("|")
        if len(fields) < 5:
            raise SystemExit(f"{command[0]} is no plugin: {line!r}")
        if call(fields[3]) == 0:
            raise SystemExit(f"{command[0]} has no schema")
        answer = time.perf_counter()
        memory = resident(process.pid)
        process.terminate()
    return (handshake - begin) * 1e3, (answer - begin) * 1e3, *memory


def main():
    listed = subprocess.run([MONOFORM, "internal-plugin", "list"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in listed.splitlines()[1:] if line.split()[1] == "provider"]
    print(f"{'':12} {'handshake':>10} {'answer':>10} {'resident':>10} {'its own':>10}   median of {ROUNDS}")
    for name in names:
        commands = {name: [MONOFORM, "internal-plugin", "provider", name]}
        other = OTHERS and os.path.join(OTHERS, f"terraform-provider-{name}")
        if other and os.path.exists(other):
            commands["  other"] = [other]
        runs = {label: [] for label in commands}
        for _ in range(ROUNDS):
            for label, command in commands.items():
                runs[label].append(start(command))
        medians = {label: [statistics.median(column) for column in zip(*rows)] for label, rows in runs.items()}
        for label, (handshake, answer, rss, own) in medians.items():
            print(f"{label:12} {handshake:7.1f} ms {answer:7.1f} ms {rss / 1024:6.1f} MiB {own / 1024:6.1f} MiB")
        if len(medians) == 2:
            ours, theirs = medians.values()
            ratios = [f"{theirs[i] / ours[i]:9.1f}x" for i in range(4)]
            print(f"{'  ratio':12} {ratios[0]} {ratios[1]} {ratios[2]} {ratios[3]}")


main()
