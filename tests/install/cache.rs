//! The plugin cache.

use std::process::Stdio;

use crate::{package, requiring, serve, workspace};
use support::registry::{Registry, platform};
use support::server::Server;
use support::{Workspace, monoform};

fn cached(server: &Server) -> Workspace {
    let w = workspace(server, &requiring(server, &[("acme/anvil", "")]));
    std::fs::create_dir(w.dir().join("../cache")).expect("a directory");
    let cache = w.dir().join("../cache").canonicalize().expect("a path");
    w.env("TF_PLUGIN_CACHE_DIR", cache.to_string_lossy())
}

#[test]
fn one_download_for_many() {
    let server = serve(Registry::new().with("acme/anvil", "1.0.0", "x"));
    let w = cached(&server);
    w.run(&["init", "-no-color"]).ok();
    let dir = package(&server, "acme/anvil", "1.0.0");
    let link = std::fs::read_link(w.dir().join(".terraform/providers").join(&dir)).expect("a link");
    assert_eq!(link, w.dir().join("../cache").canonicalize().unwrap().join(&dir));
    let lock = w.read(".terraform.lock.hcl");
    assert_eq!(
        (lock.matches("h1:").count(), lock.matches("zh:").count()),
        (1, 2),
        "{lock}"
    );

    // With a lock file and the locked package in the cache, no request is sent.
    server.requests();
    std::fs::remove_dir_all(w.dir().join(".terraform")).unwrap();
    let init = w.run(&["init", "-no-color"]).ok();
    let line = format!(
        "- Using {}/acme/anvil v1.0.0 from the shared cache directory\n",
        server.host()
    );
    assert!(init.stdout.contains(&line), "{}", init.all());
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(w.read(".terraform.lock.hcl"), lock);

    // Packages in the cache are trusted only if the lock file has their checksums.
    let fresh = |w: &Workspace| {
        std::fs::remove_dir_all(w.dir().join(".terraform")).unwrap();
        let _ = std::fs::remove_file(w.dir().join(".terraform.lock.hcl"));
        server.requests();
    };
    let program = format!("../cache/{dir}/terraform-provider-anvil_v1.0.0");
    fresh(&w);
    w.write(&program, "changed");
    w.run(&["init"]).ok();
    assert!(server.requests().iter().any(|line| line.ends_with(".zip")));
    assert_eq!(w.read(&program), format!("x {}\n", platform()));
    assert_eq!(w.read(".terraform.lock.hcl"), lock);
    fresh(&w);
    let w = w.env("TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE", "1");
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(init.stdout.contains(&line), "{}", init.all());
    assert!(!server.requests().iter().any(|line| line.ends_with(".zip")));
    assert!(!w.read(".terraform.lock.hcl").contains("zh:"));
}

#[test]
fn a_missing_cache_is_reported_and_a_cache_is_no_place_to_look_for_plugins() {
    let server = serve(Registry::new().with("acme/anvil", "1.0.0", "x"));
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    let w = w.env("TF_PLUGIN_CACHE_DIR", "/no/such/directory");
    let init = w.run(&["init"]).ok();
    let told =
        "The environment variable TF_PLUGIN_CACHE_DIR: the plugin cache directory /no/such/directory does not exist";
    assert!(support::words(&init.stderr).contains(told), "{}", init.all());
    assert!(!std::path::Path::new("/no/such").exists());

    let w = cached(&server);
    w.write("main.tf", &requiring(&server, &[("acme/bolt", "")]));
    let path = format!(
        "../cache/{}/acme/bolt/1.0.0/{}/terraform-provider-bolt",
        server.host(),
        platform()
    );
    w.write(&path, "unasked");
    w.run(&["init"]).fails_with(&["has no provider"]);
}

#[test]
fn twenty_at_once() {
    let server = serve(Registry::new().with("acme/anvil", "1.0.0", &"long ".repeat(100_000)));
    let w = cached(&server);
    let dirs: Vec<String> = (0..20).map(|i| format!("d{i}")).collect();
    for dir in &dirs {
        w.write(&format!("{dir}/main.tf"), &requiring(&server, &[("acme/anvil", "")]));
    }
    let start = |dir: &String| {
        let mut command = w.command(monoform());
        command.args([&format!("-chdir={dir}"), "init", "-no-color"]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let running: Vec<_> = dirs.iter().map(start).collect();
    for child in running {
        let ran = support::ran(child.wait_with_output().expect("output"));
        assert_eq!(ran.status, 0, "{}", ran.all());
    }
    let program = format!(
        "{}/terraform-provider-anvil_v1.0.0",
        package(&server, "acme/anvil", "1.0.0")
    );
    let locks: std::collections::BTreeSet<String> = dirs
        .iter()
        .map(|dir| w.read(&format!("{dir}/.terraform.lock.hcl")))
        .collect();
    assert_eq!(locks.len(), 1, "all have chosen the same");
    for dir in &dirs {
        let text = w.read(&format!("{dir}/.terraform/providers/{program}"));
        assert_eq!(text.len(), 500_002 + platform().len());
    }
    let left: Vec<_> = std::fs::read_dir(w.dir().join("../cache")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
