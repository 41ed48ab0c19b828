//! Transfer from a machine with a network to one without: the carried packages, the missing ones, and an update.

use support::registry::{Registry, zip};
use support::server::{Reply, Server};
use support::{Ran, Workspace};

/// A machine without a network: not even the loopback interface is up.
pub struct Site(pub Workspace);

impl Site {
    /// Returns true if namespaces are available; otherwise the test is skipped.
    pub fn is_possible(test: &str) -> bool {
        let namespaces = std::process::Command::new("unshare").args(["-rn", "true"]).output();
        let possible = namespaces.is_ok_and(|output| output.status.success());
        if !possible {
            support::skip(test, "unshare", "cannot make a network namespace");
        }
        possible
    }

    /// Runs a program of the working directory without a network.
    pub fn run(&self, program: &str, args: &[&str]) -> Ran {
        let program = self.0.dir().join(program).display().to_string();
        let args = [&["-rn", "--", &program], args, &["-no-color"]].concat();
        self.0.run_program("unshare", &args)
    }
}

#[test]
fn providers_and_modules_are_carried_to_a_machine_without_a_network() {
    let test = "providers_and_modules_are_carried_to_a_machine_without_a_network";
    if !Site::is_possible(test) {
        return;
    }
    // Small providers that can be run: they execute this program.
    let lean = support::lean().display().to_string();
    let serving = |name: &str| format!("#!/bin/sh\nexec '{lean}' internal-plugin provider {name}\n");
    let registry = Registry::new()
        .with("acme/null", "3.1.0", &serving("null"))
        .with("acme/null", "4.0.0", "exit 1")
        .with("acme/time", "0.9.0", "exit 1")
        .with("acme/time", "0.12.0", &serving("time"));
    let module = zip(&[("main.tf", b"output \"said\" {\n  value = \"from elsewhere\"\n}\n")]);
    let server = Server::https(move |request| match request.path() {
        "/module.zip" => Reply::ok(module.clone()),
        _ => registry.answer(request),
    });
    let first = format!(
        "{}resource \"null_resource\" \"a\" {{\n}}\nmodule \"m\" {{\n  source = \"{}\"\n}}\noutput \"said\" {{\n  value = \
         module.m.said\n}}\n",
        crate::requiring(&server, &[("acme/null", "~> 3.0")]),
        server.url("/module.zip"),
    );
    let a = crate::workspace(&server, &first);
    let on_a = |args: &[&str]| a.run_program(support::lean(), args);
    on_a(&["init", "-no-color"]).ok();
    on_a(&["pack", "-no-color", "-out=site"]).ok();
    on_a(&["modules", "mirror", "-no-color", "mirror"]).ok();

    let b = Site(Workspace::with(&[
        ("main.tf", &first),
        (".terraform.lock.hcl", &a.read(".terraform.lock.hcl")),
    ]));
    let carry = |name: &str| std::fs::copy(a.dir().join(name), b.0.dir().join(name)).expect("a copy");
    carry("site");
    support::copy(&a.dir().join("mirror"), &b.0.dir().join("mirror"));
    b.run("site", &["init", "-mirror=mirror", "-lockfile=readonly"]).ok();
    let applied = b.run("site", &["apply", "-auto-approve"]).ok();
    applied.shows(&["1 added", "said = \"from elsewhere\""]);

    // The error about missing packages contains the command that packs them.
    let both = crate::requiring(&server, &[("acme/null", "~> 3.0"), ("acme/time", ">= 0.10, < 1.0")]);
    let (_, rest) = first.split_once("resource").expect("a resource");
    let second = format!("{both}resource \"time_static\" \"t\" {{\n}}\nresource{rest}");
    b.0.write("main.tf", &second);
    let source = format!("{}/acme/time", server.host());
    let command = format!("monoform pack -out=FILE \"-provider={source}@>= 0.10.0, < 1.0.0\"");
    let required = "required_providers of the root module";
    let planned = b.run("site", &["plan"]).fails_with(&[
        "Provider not available",
        required,
        "This executable carries other providers",
        &command,
    ]);
    b.run("site", &["init"])
        .fails_with(&["cannot be listed", required, &command]);
    let none = b.run("site", &["init", "-mirror=mirror"]);
    none.fails_with(&["There is no version of the provider", required, &command]);

    // If the lock file was copied before the provider, the locked version is used.
    let other = crate::workspace(&server, &second);
    other.run_program(support::lean(), &["init", "-no-color"]).ok();
    b.0.write(".terraform.lock.hcl", &other.read(".terraform.lock.hcl"));
    let command = format!("monoform pack -out=FILE \"-provider={source}@0.12.0\"");
    b.run("site", &["plan"])
        .fails_with(&["Provider not available", required, &command]);
    b.run("site", &["init"])
        .fails_with(&["Failed to install provider", required, &command]);

    // The command from the message is run unchanged, and once more with a difference.
    let line = planned.all();
    let line = line
        .lines()
        .find(|line| line.contains("monoform pack"))
        .expect("a command");
    let line = line.trim().replace("monoform ", &format!("'{lean}' "));
    for (out, more) in [("time", ""), ("update", " -from=site -since=site")] {
        let line = line.replace("FILE", out);
        a.run_program("sh", &["-c", &format!("{line}{more}")]).ok();
    }
    on_a(&["pack", "-no-color", "-list", "time"])
        .ok()
        .shows(&[&format!("{source} v0.12.0")]);
    carry("update");
    b.run("site", &["pack", "-update=update", "-out=newer"]).ok();
    b.run("newer", &["init", "-mirror=mirror"]).ok();
    b.run("newer", &["apply", "-auto-approve"])
        .ok()
        .shows(&["1 added", "0 destroyed"]);
}
