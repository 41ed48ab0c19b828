//! The backend `remote` compared with Terraform's: requests, workspaces, tokens and errors.

use serde_json::json;

use crate::hcp::{Remote, TOKEN};
use crate::hcp_lab::{applied_by_all, cloud, lab_version, made, names, tools};
use crate::lab::{RESOURCE, Tool, run};

pub const TESTS: &[(&str, fn())] = &[
    ("requests_are_those_of_terraform", requests),
    ("workspaces_by_prefix_are_the_same_to_both", prefixes),
    ("what_leads_nowhere_is_an_error", errors),
    ("a_busy_server_is_asked_again", busy),
    (
        "a_state_that_is_refused_is_kept_and_the_workspace_stays_locked",
        refused,
    ),
    ("tokens_come_from_where_terraform_has_them", tokens),
    ("a_relative_cli_configuration_is_found_with_chdir", chdir),
    ("a_version_that_does_not_fit_is_refused_or_ignored", version_check),
];

/// Both programs send the same changing requests in the same order.
fn requests() {
    let mut seen = Vec::new();
    for tool in tools() {
        let (lab, hcp) = made("remote", "name = \"only\"");
        let w = lab.without();
        w.write("backend.tf", &lab.block(""));
        run(&w, tool, &["init", "-input=false"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        run(&w, tool, &["apply", "-auto-approve", "-var=word=y"]).ok();
        run(&w, tool, &["state", "rm", "terraform_data.a"]).ok();
        let changes: Vec<String> = hcp.log().into_iter().filter(|line| !line.starts_with("GET ")).collect();
        let world = hcp.world();
        let only = &world.workspaces["only"];
        assert!(!only.locked && only.states.len() == 3, "{changes:#?}");
        assert_eq!(only.version, lab_version(tool));
        seen.push(changes);
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:#?}");
}

fn prefixes() {
    let (lab, hcp) = made("remote", "prefix = \"app-\"");
    hcp.world()
        .workspaces
        .insert("other-app-x".to_owned(), Remote::default());
    for (i, tool) in tools().into_iter().enumerate() {
        let w = lab.without();
        w.write("backend.tf", &lab.block(""));
        if i == 0 {
            run(&w, tool, &["init", "-input=false"]).fails_with(&["No existing workspaces"]);
            for name in ["dev", "prod", "test"] {
                run(&w, tool, &["workspace", "new", name]).ok();
            }
        } else {
            run(&w, tool, &["init", "-input=false"]).fails_with(&["does not exist"]);
            w.write(".terraform/environment", "dev");
            run(&w, tool, &["init", "-input=false"]).ok();
            run(&w, tool, &["workspace", "select", "test"]).ok();
        }
        assert_eq!(names(&w, tool), ["dev", "prod", "* test"], "{tool:?}");
        run(&w, tool, &["apply", "-auto-approve", "-var=word=test"]).ok();
        run(&w, tool, &["workspace", "select", "prod"]).ok();
        let planned = run(&w, tool, &["plan"]).ok();
        assert!(planned.stdout.contains("1 to add"), "{}", planned.all());
        run(&w, tool, &["workspace", "new", "gone"]).ok();
        run(&w, tool, &["workspace", "select", "prod"]).ok();
        assert!(hcp.world().workspaces.contains_key("app-gone"));
        run(&w, tool, &["workspace", "delete", "gone"]).ok();
        assert!(!hcp.world().workspaces.contains_key("app-gone"));
    }
    assert_eq!(
        hcp.world().workspaces["app-test"].states.len(),
        applied_by_all(),
        "the second apply changes nothing"
    );
}

fn errors() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    let host = hcp.host();
    for tool in tools() {
        let init = |from: &str, to: &str, expected: &[&str]| {
            let w = lab.without();
            let block = lab.block("");
            assert!(block.contains(from), "{from}");
            w.write("backend.tf", &block.replace(from, to));
            run(&w, tool, &["init", "-input=false"]).fails_with(expected);
        };
        init(
            "\"org\"",
            "\"no-org\"",
            &[&format!("Failed to read organization \"no-org\" at host {host}")],
        );
        init(TOKEN, "wrong", &["Failed to read organization \"org\""]);
        let nowhere = format!("token = \"{TOKEN}\"");
        init(
            &nowhere,
            "",
            &["Required token could not be found", &format!("login {host}")],
        );
        init(
            "name = \"only\"",
            "",
            &["Invalid workspaces configuration", "\"prefix\""],
        );
        init(
            "name = \"only\"",
            "name = \"only\"\nprefix = \"x\"",
            &["Invalid workspaces configuration"],
        );
        init("\"org\"", "\"\"", &["Invalid organization value"]);
    }
}

fn busy() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    let w = lab.directory(Tool::Monoform);
    hcp.world().disturbance = vec![429, 503, 429];
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert_eq!(hcp.world().workspaces["only"].states.len(), 1);
}

fn refused() {
    for tool in tools() {
        let (lab, hcp) = made("remote", "name = \"only\"");
        let w = lab.directory(tool);
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        hcp.world().refuses = true;
        let failed = run(&w, tool, &["apply", "-auto-approve", "-var=word=y"]);
        assert_eq!(failed.status, 1, "{}", failed.all());
        assert!(w.exists("errored.tfstate"), "{tool:?}: {}", failed.all());
        assert!(hcp.world().workspaces["only"].locked, "{tool:?}");
        hcp.world().refuses = false;
        run(&w, tool, &["plan"]).fails_with(&["Error acquiring the state lock", "org/only"]);
        run(&w, tool, &["force-unlock", "-force", "org/other"]);
        assert!(hcp.world().workspaces["only"].locked, "{tool:?}");
        run(&w, tool, &["force-unlock", "-force", "org/only"]).ok();
        run(&w, tool, &["state", "push", "errored.tfstate"]).ok();
        let planned = run(&w, tool, &["plan", "-var=word=y"]).ok();
        assert!(planned.stdout.contains("No changes."), "{}", planned.all());
    }
}

fn tokens() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    let host = hcp.host();
    for tool in tools() {
        for place in ["file", "variable", "helper"] {
            let mut w = lab.without();
            w.write("main.tf", RESOURCE);
            w.write(
                "backend.tf",
                &lab.block("").replace(&format!("token = \"{TOKEN}\""), ""),
            );
            let config = w.home().join(".terraform.d");
            std::fs::create_dir_all(config.join("plugins")).expect("a directory");
            match place {
                "file" => {
                    let text = json!({"credentials": {&*host: {"token": TOKEN}}}).to_string();
                    std::fs::write(config.join("credentials.tfrc.json"), text).expect("a file");
                }
                "variable" => w = w.env(&format!("TF_TOKEN_{host}"), TOKEN),
                _ => {
                    use std::os::unix::fs::PermissionsExt as _;
                    let helper = config.join("plugins/terraform-credentials-box");
                    std::fs::write(&helper, format!("#!/bin/sh\necho '{{\"token\":\"{TOKEN}\"}}'\n"))
                        .expect("a script");
                    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("a program");
                    std::fs::write(w.home().join(".terraformrc"), "credentials_helper \"box\" {}\n").expect("a file");
                }
            }
            run(&w, tool, &["init", "-input=false"]).ok();
        }
    }
}

fn chdir() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    for tool in tools() {
        let w = lab.without().env("TF_CLI_CONFIG_FILE", "rc");
        let block = lab.block("").replace(&format!("token = \"{TOKEN}\""), "");
        w.write("sub/backend.tf", &block);
        w.write("sub/main.tf", RESOURCE);
        w.write(
            "rc",
            &format!("credentials \"{}\" {{\n  token = \"{TOKEN}\"\n}}\n", hcp.host()),
        );
        for command in [&["init", "-input=false"][..], &["apply", "-auto-approve"], &["output"]] {
            let args = [&["-chdir=sub"], command].concat();
            w.run_program(tool.path(), &args).ok();
        }
    }
}

fn version_check() {
    for tool in tools() {
        for ty in ["remote", "cloud"] {
            let (lab, hcp) = made("remote", "name = \"only\"");
            let w = match ty {
                "remote" => lab.directory(tool),
                _ => {
                    let w = cloud(&lab, &hcp, "name = \"only\"");
                    run(&w, tool, &["init", "-input=false"]).ok();
                    w
                }
            };
            run(&w, tool, &["apply", "-auto-approve"]).ok();
            {
                let mut world = hcp.world();
                let only = world.workspaces.get_mut("only").expect("it is there");
                (only.mode, only.version) = ("remote".to_owned(), "1.5.7".to_owned());
            }
            let mv = ["state", "mv", "terraform_data.a", "terraform_data.b"];
            let expected = match ty {
                "remote" => ["Terraform version mismatch", "org/only (1.5.7)"],
                _ => ["Incompatible Terraform version", "org/only (~> 1.5.0)"],
            };
            // Terraform colours the text here, and breaks its lines.
            let refused = run(&w, tool, &mv);
            assert_eq!(refused.status, 1, "{ty} {tool:?}: {}", refused.all());
            assert!(refused.stderr.contains(expected[0]), "{ty} {tool:?}: {}", refused.all());
            assert!(
                refused
                    .stderr
                    .contains(expected[1].split_once(' ').expect("two words").1),
                "{}",
                refused.all()
            );
            let ignored = [&mv[..2], &["-ignore-remote-version"], &mv[2..]].concat();
            let moved = run(&w, tool, &ignored).ok();
            assert!(moved.all().contains(expected[0]), "{ty} {tool:?}: {}", moved.all());
            let listed = run(&w, tool, &["state", "list"]).ok();
            assert_eq!(listed.stdout.trim(), "terraform_data.b");
        }
    }
}
