//! `cloud` blocks compared with Terraform's: selection of workspaces, migration of states, and the environment.

use serde_json::{Value, json};

use crate::hcp::{Remote, TOKEN};
use crate::hcp_lab::{applied_by_all, asked, cloud, cloud_block, made, names, record, tools};
use crate::lab::run;

pub const TESTS: &[(&str, fn())] = &[
    ("cloud::a_local_state_is_brought_to_the_named_workspace", cloud_by_name),
    ("cloud::workspaces_with_tags_are_the_same_to_both", cloud_by_tags),
    ("cloud::what_the_environment_adds", cloud_environment),
    ("cloud::outputs_are_read_without_the_state", cloud_outputs),
    ("cloud::options_and_changes", cloud_options),
    ("cloud::several_workspaces_are_renamed_by_a_pattern", cloud_pattern),
];

fn cloud_by_name() {
    let mut seen = Vec::new();
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = lab.without();
        run(&w, tool, &["apply", "-auto-approve"]);
        run(&w, tool, &["init"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        cloud_block(&w, &hcp, "name = \"only\"");
        run(&w, tool, &["plan"]).fails_with(&["initialization required: please run"]);
        let init = asked(&w, tool, &["init"], &["yes"]);
        assert_eq!(init.status, 0, "{}", init.all());
        assert!(
            init.stdout.contains("HCP Terraform has been successfully initialized!"),
            "{}",
            init.all()
        );
        assert_eq!(w.read(".terraform/environment"), "only");
        assert_eq!(w.read("terraform.tfstate"), "", "the state has moved");
        for other in tools() {
            let planned = run(&w, other, &["plan"]).ok();
            assert!(planned.stdout.contains("No changes."), "{other:?}: {}", planned.all());
        }
        hcp.log();
        run(&w, tool, &["apply", "-auto-approve", "-var=word=y"]).ok();
        let listed = run(&w, tool, &["workspace", "list"]).ok();
        assert_eq!(listed.stdout.trim(), "* only");
        assert_ne!(run(&w, tool, &["workspace", "new", "other"]).status, 0);
        assert_eq!(run(&w, tool, &["output", "-raw", "word"]).ok().stdout, "y");
        let changes: Vec<String> = hcp.log().into_iter().filter(|line| !line.starts_with("GET ")).collect();
        let mut record = record(&w);
        record["backend"]["config"]["hostname"] = Value::Null;
        // The hash of the block includes the host, whose port differs between the runs.
        assert!(record["backend"]["hash"].is_u64());
        record["backend"]["hash"] = Value::Null;
        record["terraform_version"] = Value::Null;
        seen.push((changes, record));
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:#?}");
}

fn cloud_by_tags() {
    for (tags, more) in [("[\"a\", \"b\"]", false), ("{ a = \"1\", b = \"x y\" }", true)] {
        let (lab, hcp) = made("cloud", "");
        hcp.world().workspaces.insert("other".to_owned(), Remote::default());
        for (i, tool) in tools().into_iter().enumerate() {
            let w = cloud(&lab, &hcp, &format!("tags = {tags}\nproject = \"web\""));
            if i == 0 {
                run(&w, tool, &["init", "-input=false"]).fails_with(&["No existing workspaces"]);
                let init = asked(&w, tool, &["init"], &["dev"]);
                assert_eq!(init.status, 0, "{}", init.all());
                run(&w, tool, &["workspace", "new", "prod"]).ok();
                run(&w, tool, &["workspace", "new", "test"]).ok();
            } else {
                let init = asked(&w, tool, &["init"], &["3"]);
                assert_eq!(init.status, 0, "{}", init.all());
            }
            assert_eq!(names(&w, tool), ["dev", "prod", "* test"], "{tool:?}");
            run(&w, tool, &["apply", "-auto-approve", "-var=word=same"]).ok();
            run(&w, tool, &["workspace", "new", "gone"]).ok();
            run(&w, tool, &["workspace", "select", "dev"]).ok();
            run(&w, tool, &["workspace", "delete", "gone"]).ok();
            let world = hcp.world();
            assert_eq!(world.projects, ["web"]);
            let dev = &world.workspaces["dev"];
            assert_eq!(dev.project.as_deref(), Some("prj-web"));
            let expected: &[(&str, &str)] = if more {
                &[("a", "1"), ("b", "x y")]
            } else {
                &[("a", ""), ("b", "")]
            };
            let found: Vec<(&str, &str)> = dev.tags.iter().map(|(key, value)| (&**key, &**value)).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(hcp.world().workspaces["test"].states.len(), applied_by_all());
    }
}

fn cloud_environment() {
    let (lab, hcp) = made("cloud", "");
    for tool in tools() {
        let w = lab.without();
        w.write("cloud.tf", "terraform {\n  cloud {}\n}\n");
        run(&w, tool, &["init", "-input=false"])
            .fails_with(&["TF_CLOUD_ORGANIZATION", "Invalid workspaces configuration"]);
        let w = w
            .env("TF_CLOUD_HOSTNAME", hcp.host())
            .env("TF_CLOUD_ORGANIZATION", "org")
            .env("TF_CLOUD_PROJECT", "p")
            .env("TF_WORKSPACE", "from-env")
            .env(&format!("TF_TOKEN_{}", hcp.host()), TOKEN);
        run(&w, tool, &["init", "-input=false"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        let config = &record(&w)["backend"]["config"];
        assert!(
            config["organization"].is_null() && config["hostname"].is_null(),
            "{config}"
        );
    }
    assert_eq!(hcp.world().workspaces["from-env"].states.len(), applied_by_all());
}

fn cloud_outputs() {
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = cloud(&lab, &hcp, "name = \"only\"");
        w.write(
            "more.tf",
            "output \"secret\" {\n  value     = \"s\"\n  sensitive = true\n}\noutput \"list\" {\n  value = [1, \"b\", true]\n}\n",
        );
        run(&w, tool, &["init", "-input=false"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        hcp.log();
        assert_eq!(
            run(&w, tool, &["output", "-raw", "secret"]).ok().stdout,
            "s",
            "{tool:?}"
        );
        let all = run(&w, tool, &["output", "-json"]).ok().json();
        assert_eq!(all["list"]["value"], json!([1, "b", true]), "{tool:?}");
        assert_eq!(all["secret"]["sensitive"], true, "{tool:?}");
        assert_eq!(all["word"]["value"], "x", "{tool:?}");
        let log = hcp.log();
        assert!(
            log.iter().all(|line| !line.ends_with("/current-state-version")),
            "{tool:?}: {log:#?}"
        );
    }
}

fn cloud_options() {
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = cloud(&lab, &hcp, "name = \"one\"");
        for option in ["-reconfigure", "-migrate-state", "-force-copy", "-backend-config=x=y"] {
            run(&w, tool, &["init", option]).fails_with(&["Invalid command-line option"]);
        }
        run(&w, tool, &["init", "-input=false"]).ok();
        cloud_block(&w, &hcp, "name = \"two\"");
        run(&w, tool, &["plan"]).fails_with(&["HCP Terraform configuration block has changed"]);
        let init = run(&w, tool, &["init", "-input=false"]).ok();
        assert!(
            init.stdout.contains("HCP Terraform configuration has changed."),
            "{}",
            init.all()
        );
        assert_eq!(w.read(".terraform/environment"), "two");
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        w.write("cloud.tf", "");
        run(&w, tool, &["plan"]).fails_with(&["Unsetting the previously set backend \"cloud\""]);
        let text =
            "Migrating state from HCP Terraform or Terraform Enterprise to another backend is not yet implemented";
        let left = run(&w, tool, &["init"]);
        assert_eq!(left.status, 1, "{}", left.all());
        let words = left
            .all()
            .replace('│', " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(words.contains(text), "{}", left.all());
        cloud_block(&w, &hcp, "name = \"two\"\ntags = [\"x\"]");
        run(&w, tool, &["init"]).fails_with(&["Invalid workspaces configuration"]);
        w.write("cloud.tf", "terraform {\n  backend \"cloud\" {}\n}\n");
        run(&w, tool, &["init"]).fails_with(&["Unsupported backend type"]);
    }
}

fn cloud_pattern() {
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = lab.without();
        run(&w, tool, &["init"]).ok();
        run(&w, tool, &["apply", "-auto-approve", "-var=word=default"]).ok();
        for name in ["dev", "prod", "void"] {
            run(&w, tool, &["workspace", "new", name]).ok();
            if name != "void" {
                run(&w, tool, &["apply", "-auto-approve", &format!("-var=word={name}")]).ok();
            }
        }
        run(&w, tool, &["workspace", "select", "dev"]).ok();
        cloud_block(&w, &hcp, "tags = [\"app\"]");
        let init = asked(&w, tool, &["init"], &["main", "1", "app-*-eu"]);
        assert_eq!(init.status, 0, "{}", init.all());
        assert!(init.stdout.contains("Migration complete!"), "{}", init.all());
        let made: Vec<String> = hcp.world().workspaces.keys().cloned().collect();
        assert_eq!(made, ["app-dev-eu", "app-main-eu", "app-prod-eu"], "{tool:?}");
        assert_eq!(w.read(".terraform/environment"), "app-dev-eu");
        assert_eq!(run(&w, tool, &["output", "-raw", "word"]).ok().stdout, "dev");
    }
}
