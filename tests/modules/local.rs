//! Local modules, and the module manifest that `get` and `init` write (`.terraform/modules/modules.json`).

use crate::{call, says};
use support::Workspace;

#[test]
fn local_modules_are_written_down_once() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "module \"b\" {\n  source = \"./b\"\n}\nmodule \"a\" {\n  source = \"./x/../a\"\n}\n",
        ),
        ("a/main.tf", "module \"in\" {\n  source = \"../b\"\n}\n"),
        ("b/main.tf", &says("b")),
    ]);
    assert_eq!(
        w.run(&["get", "-no-color"]).ok().stdout,
        "- a in a\n- a.in in b\n- b in b\n"
    );
    assert_eq!(
        w.read(".terraform/modules/modules.json"),
        "{\"Modules\":[{\"Key\":\"\",\"Source\":\"\",\"Dir\":\".\"},{\"Key\":\"a\",\"Source\":\"./a\",\"Dir\":\"a\"},\
         {\"Key\":\"a.in\",\"Source\":\"../b\",\"Dir\":\"b\"},{\"Key\":\"b\",\"Source\":\"./b\",\"Dir\":\"b\"}]}"
    );
    assert_eq!(w.run(&["get"]).ok().stdout, "");
    assert_eq!(
        w.run(&["get", "-update"]).ok().stdout,
        "- a in a\n- a.in in b\n- b in b\n"
    );
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(
        init.stdout
            .contains("Initializing modules...\nInitializing provider plugins..."),
        "{}",
        init.all()
    );
    w.run(&["get", "somewhere"])
        .fails_with(&["Too many command line arguments"]);
}

#[test]
fn a_directory_by_absolute_path() {
    let w = Workspace::with(&[("../far/main.tf", &says("far")), ("../far/sub/main.tf", &says("sub"))]);
    let far = w.dir().parent().unwrap().canonicalize().unwrap().join("far");
    w.write("main.tf", &call(&far.to_string_lossy(), ""));
    let get = w.run(&["get", "-no-color"]).ok();
    assert_eq!(
        get.stdout,
        format!(
            "Downloading file://{} for m...\n- m in .terraform/modules/m\n",
            far.display()
        )
    );
    // A change in the directory takes effect at once.
    w.write("../far/main.tf", &says("changed"));
    let plan = w.run(&["plan", "-no-color"]).ok();
    assert!(plan.stdout.contains("changed"), "{}", plan.all());
    // The user's directory is not removed together with the module's call.
    w.write("main.tf", &call(&format!("{}//sub", far.display()), ""));
    w.run(&["get", "-update"]).ok();
    assert!(far.join("main.tf").exists());

    w.write("main.tf", &call(&format!("{}-not", far.display()), ""));
    w.run(&["get"])
        .fails_with(&["Failed to download module", "reading failed", "main.tf line 2"]);
    w.write("main.tf", &call(&format!("{}/main.tf", far.display()), ""));
    w.run(&["get"]).fails_with(&["is a file"]);
    w.write("main.tf", &call("far/away", ""));
    w.run(&["get"])
        .fails_with(&["Invalid module source address", "\"./far/away\""]);
}

#[test]
fn what_an_interrupted_run_left_is_no_module() {
    let w = Workspace::with(&[("../far/main.tf", &says("far"))]);
    let far = w.dir().parent().unwrap().canonicalize().unwrap().join("far");
    w.write("main.tf", &call(&far.to_string_lossy(), ""));
    // Leftovers in the modules directory: one of an unfinished installation, and one of an aborted download.
    w.write(".terraform/modules/m/half.tf", "output \"half\" {");
    w.write(".terraform/modules/.partial-x/package/main.tf", "");
    w.run(&["plan"]).fails_with(&["Module not installed"]);
    w.run(&["init"]).ok();
    assert!(!w.exists(".terraform/modules/m/half.tf") && !w.exists(".terraform/modules/.partial-x"));
    w.run(&["plan"]).ok();
    // The manifest has an entry whose module is missing.
    std::fs::remove_file(w.dir().join(".terraform/modules/m")).unwrap();
    w.run(&["init"]).ok();
    w.run(&["plan"]).ok();
}

#[test]
fn one_failure_does_not_undo_the_rest() {
    let w = Workspace::with(&[("../far/main.tf", &says("far"))]);
    let far = w.dir().parent().unwrap().canonicalize().unwrap().join("far");
    w.write(
        "main.tf",
        &format!(
            "module \"bad\" {{\n  source = \"{0}-not\"\n}}\nmodule \"good\" {{\n  source = \"{0}\"\n}}\n",
            far.display()
        ),
    );
    let failed = w
        .run(&["init"])
        .fails_with(&["\"bad\" could not be fetched", "main.tf line 2"]);
    assert!(
        !failed.stderr.contains("Module not installed"),
        "said once: {}",
        failed.all()
    );
    assert!(w.read(".terraform/modules/modules.json").contains("\"Key\":\"good\""));
    w.run(&["init", "-get=false"]).fails_with(&["Module not installed"]);
}

/// A const variable determines the address of a package, and the package calls another one whose address is an
/// argument.
#[test]
fn sources_depend_on_const_variables() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "variable \"root\" {\n  const = true\n}\nmodule \"a\" {\n  source = \"${var.root}/outer\"\n  inner  = \
             \"${var.root}/inner\"\n}\noutput \"o\" {\n  value = module.a.o\n}\n",
        ),
        (
            "../outer/main.tf",
            "variable \"inner\" {\n  const = true\n}\nlocals {\n  from = var.inner\n}\nmodule \"b\" {\n  source = local.from\n}\noutput \
             \"o\" {\n  value = module.b.o\n}\n",
        ),
        ("../inner/main.tf", "output \"o\" {\n  value = \"inner\"\n}\n"),
    ]);
    let root = w.dir().parent().unwrap().canonicalize().unwrap();
    let root = format!("-var=root={}", root.display());
    w.run(&["get", &root]).ok();
    let manifest = w.read(".terraform/modules/modules.json");
    assert!(
        manifest.contains("\"Key\":\"a.b\"") && manifest.contains("/inner\""),
        "{manifest}"
    );
    // Without the value the modules are unknown, and the installation does not change.
    for command in ["get", "init", "validate", "providers", "modules"] {
        w.run(&[command]).fails_with(&["No value for required variable"]);
    }
    assert_eq!(w.read(".terraform/modules/modules.json"), manifest);
    w.run(&["validate", &root]).ok();
    w.run(&["modules", &root]).ok();
    w.run(&["plan", &root, "-out=p"]).ok();
    // The value is in the plan.
    let plan = w.run(&["show", "-json", "p"]).ok().json();
    let source = plan["configuration"]["root_module"]["module_calls"]["a"]["source"].clone();
    assert!(source.as_str().is_some_and(|s| s.ends_with("/outer")), "{source}");
    w.run(&["apply", "p"]).ok();
    assert_eq!(w.run(&["output", "-raw", "o"]).ok().stdout.trim(), "inner");
    // Commands that only read the state need no value.
    w.run(&["state", "list"]).ok();
    w.run(&["state", "pull"]).ok();
    w.run(&["state", "pull", "-var=nothing=1"])
        .fails_with(&["Value for undeclared variable"]);
}

/// The directory of a module may be reached through a link. A saved plan contains the module's files, even if the link
/// later leads elsewhere.
#[test]
fn a_saved_plan_has_the_modules_behind_links() {
    let w = Workspace::with(&[
        ("main.tf", "module \"m\" {\n  source = \"./linked/m\"\n}\n"),
        ("../shared/m/main.tf", "module \"in\" {\n  source = \"../in\"\n}\n"),
        ("../shared/in/main.tf", "resource \"terraform_data\" \"x\" {}\n"),
    ]);
    std::os::unix::fs::symlink("../shared", w.dir().join("linked")).expect("a link");
    w.run(&["plan", "-no-color", "-out=p"]).ok();
    std::fs::remove_file(w.dir().join("linked")).expect("a link");
    w.run(&["show", "-no-color", "p"])
        .ok()
        .shows(&["module.m.module.in.terraform_data.x will be created"]);
    w.run(&["apply", "-no-color", "p"]).ok().shows(&["Resources: 1 added"]);
}
