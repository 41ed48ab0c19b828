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

# How many module calls of ten resources each, and as many blocks of their own in one module.
CALLS = [300, 3000]

# How often the larger one is planned again: each time every request must be answered.
REPLANS = 10

# What is called: ten resources, each of which refers to the one before.
SERVICE = """
variable "name" {{ type = string }}
resource "terraform_data" "r0" {{
  input = var.name
}}
{rest}
output "last" {{ value = terraform_data.r9.output }}
"""

# What reading is measured on: the sizes of the configurations in MB.
MEGABYTES = [1, 5]

# One part of a configuration, about 2 KB: what people write, in its usual proportions.
PART = """
# Service {i}: what it is called, how many of it there are, and what it tells others.
variable "service_{i}" {{
  description = "The settings of service {i}: ports, labels and replicas, as other services see them."
  type = object({{
    name     = string
    replicas = optional(number, 2)
    ports    = optional(map(number), {{ http = 80, https = 443 }})
    labels   = optional(map(string), {{}})
  }})
  default = {{
    name   = "service-{i}"
    labels = {{ tier = "backend", team = "team-{team}", cost = "c{i}" }}
  }}

  validation {{
    condition     = length(var.service_{i}.name) < 64 && can(regex("^[a-z][a-z0-9-]*$", var.service_{i}.name))
    error_message = "The name of service {i} has letters, digits and hyphens only, up to 63."
  }}
}}

locals {{
  ports_{i} = {{
    for name, port in var.service_{i}.ports : upper(name) => port + {i}
    if port > 0 && !contains(["debug", "trace"], name)
  }}
  labels_{i} = merge(var.service_{i}.labels, {{
    "app.kubernetes.io/name"     = var.service_{i}.name
    "app.kubernetes.io/instance" = "${{var.service_{i}.name}}-${{terraform.workspace}}"
  }})
  addresses_{i} = [for n in range(var.service_{i}.replicas) : cidrhost("10.{team}.0.0/16", n + 10)]
}}

resource "terraform_data" "service_{i}" {{
  count = var.service_{i}.replicas > 0 ? 1 : 0
  input = {{
    labels    = local.labels_{i}
    addresses = join(",", local.addresses_{i})
    unit      = <<-EOT
      [Unit]
      Description=${{var.service_{i}.name}}, replica ${{count.index + 1}} of ${{var.service_{i}.replicas}}
      %{{for name, port in local.ports_{i}~}}
      Environment=PORT_${{name}}=${{port}}
      %{{endfor~}}
      %{{if var.service_{i}.replicas > 1}}Restart=always%{{else}}Restart=no%{{endif}}
    EOT
  }}
  triggers_replace = [sha256(jsonencode(local.labels_{i})), try(var.service_{i}.labels["version"], "none")]
{previous}
  lifecycle {{
    create_before_destroy = true
  }}
}}

output "service_{i}" {{
  description = "Where service {i} is reached."
  value       = {{ for name, port in local.ports_{i} : name => formatlist("%s:%d", local.addresses_{i}, port) }}
}}
"""

# Parts of a module that is called many times, from files of its own.
CALL = """
module "team_{i}" {{
  source = "./team"
  name   = "team-{i}"
  members = {{
    lead = var.service_{i}.name
    all  = join(" ", keys(local.labels_{i}))
  }}
}}
"""

CALLED = """
variable "name" {{ type = string }}
variable "members" {{ type = map(string) }}
resource "terraform_data" "team" {{
  for_each = var.members
  input    = "${{var.name}}: ${{each.key}} is ${{each.value}}"
}}
output "ids" {{ value = {{ for k, v in terraform_data.team : k => v.id }} }}
"""


def configuration(megabytes):
    """Files of a configuration, about so many MB of it in files of 100 KB."""
    files = {"team/main.tf": CALLED.format()}
    i, size, text = 0, 0, ""
    while size + len(text) < megabytes * 1_000_000:
        previous = f"  depends_on       = [terraform_data.service_{i - 1}]\n" if i % 5 else ""
        text += PART.format(i=i, team=i % 200, previous=previous)
        if i % 20 == 0:
            text += CALL.format(i=i)
        i += 1
        if len(text) > 100_000:
            files[f"services_{len(files)}.tf"] = text
            size, text = size + len(text), ""
    files["rest.tf"] = text
    return files


def called(n):
    """Files of a configuration of so many module calls, ten resources each."""
    rest = "".join(
        f'resource "terraform_data" "r{i}" {{\n  input = "${{terraform_data.r{i - 1}.output}} {i}"\n}}\n' for i in range(1, 10)
    )
    calls = "".join(f'module "m{i}" {{\n  source = "./service"\n  name   = "service {i}"\n}}\n' for i in range(n))
    return {"main.tf": calls, "service/main.tf": SERVICE.format(rest=rest)}


def blocks(n):
    """Files of a configuration of ten times so many resource blocks, in files of a thousand."""
    block = 'resource "terraform_data" "r{i}" {{\n  input = "value {i}"\n}}\n'
    all_blocks = [block.format(i=i) for i in range(10 * n)]
    return {f"part{i}.tf": "".join(all_blocks[i : i + 1000]) for i in range(0, 10 * n, 1000)}


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


def write(directory, files):
    for name, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(directory, name)), exist_ok=True)
        with open(os.path.join(directory, name), "w") as file:
            file.write(text)


def measure_blocks(peer):
    """Many module calls, and many blocks: the first plan, apply, and plans without changes."""
    for name, files in (("modules", called), ("blocks", blocks)):
        previous = None
        print(f"\n{name} of ten resources: plan, apply and re-plan ({REPLANS} times, the slowest), seconds")
        print(f"{name:>10} {'plan':>8} {'apply':>8} {'re-plan':>8} {'peak MiB':>9}" + (f" {'peer plan':>10} {'ratio':>7}" if peer else ""))
        for n in CALLS:
            with tempfile.TemporaryDirectory() as directory:
                write(directory, files(n))
                first, peak = run(MONOFORM, directory, "plan", "-no-color")
                apply, _ = run(MONOFORM, directory, "apply", "-auto-approve", "-no-color")
                again = max(run(MONOFORM, directory, "plan", "-no-color", "-detailed-exitcode")[0] for _ in range(REPLANS))
            line = f"{n:>10} {first:>8.2f} {apply:>8.2f} {again:>8.2f} {peak:>9.0f}"
            # The peer takes time that grows faster than the number: only the smaller one.
            if peer and n == CALLS[0]:
                with tempfile.TemporaryDirectory() as directory:
                    write(directory, files(n))
                    run(peer, directory, "init", "-no-color")
                    peer_plan, _ = run(peer, directory, "plan", "-no-color")
                line += f" {peer_plan:>10.2f} {peer_plan / first:>6.0f}x"
            print(line, flush=True)
            if previous:
                size, *times = previous
                growth = [now / before for now, before in zip((first, apply, again), times)]
                shown = ", ".join(f"{what} {g:.1f}" for what, g in zip(("plan", "apply", "re-plan"), growth))
                print(f"           growth from {size}: {n / size:.0f} times as many, {shown}")
            previous = (n, first, apply, again)


def read(program, files):
    """The time and the peak memory of validate."""
    with tempfile.TemporaryDirectory() as directory:
        write(directory, files)
        if os.path.basename(program) == "terraform" or os.path.basename(program) == "tofu":
            run(program, directory, "init", "-no-color")
        return run(program, directory, "validate", "-no-color")


def measure_reading(peer):
    """How fast configurations are parsed and checked."""
    print("\nreading: validate")
    print(f"{'MB':>10} {'seconds':>8} {'MB/s':>8} {'peak MiB':>9}" + (f" {'peer s':>11} {'peer MB/s':>10} {'ratio':>7}" if peer else ""))
    for megabytes in MEGABYTES:
        files = configuration(megabytes)
        size = sum(len(text.encode()) for text in files.values()) / 1_000_000
        time_taken, peak = read(MONOFORM, files)
        line = f"{size:>10.1f} {time_taken:>8.2f} {size / time_taken:>8.2f} {peak:>9.0f}"
        if peer:
            peer_time, _ = read(peer, files)
            line += f" {peer_time:>11.2f} {size / peer_time:>10.2f} {peer_time / time_taken:>6.0f}x"
        print(line, flush=True)


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
    measure_blocks(peer)
    measure_reading(peer)


main()
