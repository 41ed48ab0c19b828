//! Packs that carry modules from a machine with a network to one without.

use support::Workspace;
use support::registry::zip;
use support::server::{Reply, Server};

use crate::site::Site;

/// Starts a registry with the module `acme/net/aws`. In its package, the module is in a subdirectory, and calls another
/// module from the same server.
fn registry() -> Server {
    let nested = zip(&[("main.tf", b"output \"said\" {\n  value = \"nested\"\n}\n")]);
    let plain = zip(&[
        (
            "main.tf",
            b"output \"said\" {\n  value = file(\"${path.module}/text.txt\")\n}\n",
        ),
        ("text.txt", b"from a file"),
    ]);
    Server::https(move |request| match request.path() {
        "/.well-known/terraform.json" => Reply::json(r#"{"modules.v1":"/v1/modules/"}"#),
        "/v1/modules/acme/net/aws/versions" => {
            Reply::json(r#"{"modules":[{"versions":[{"version":"1.0.0"},{"version":"1.2.0"},{"version":"2.0.0"}]}]}"#)
        }
        "/v1/modules/acme/net/aws/1.0.0/download"
        | "/v1/modules/acme/net/aws/1.2.0/download"
        | "/v1/modules/acme/net/aws/2.0.0/download" => {
            let version = request.path().split('/').nth(6).unwrap_or_default().to_owned();
            Reply::status(204).with("X-Terraform-Get", &format!("/net-{version}.zip//inner"))
        }
        "/nested.zip" => Reply::ok(nested.clone()),
        "/plain.zip" => Reply::ok(plain.clone()),
        path => match path.strip_prefix("/net-").and_then(|rest| rest.strip_suffix(".zip")) {
            Some(version) => {
                let text = format!(
                    "module \"nested\" {{\n  source = \"https://{}/nested.zip\"\n}}\noutput \"said\" {{\n  value = \"net {version} \
                     ${{module.nested.said}}\"\n}}\n",
                    request.header("host")
                );
                Reply::ok(zip(&[("inner/main.tf", text.as_bytes()), ("README.md", b"read")]))
            }
            None => Reply::status(404),
        },
    })
}

fn calls(server: &Server, constraint: &str, more: &str) -> String {
    format!(
        "module \"net\" {{\n  source  = \"{}/acme/net/aws\"\n  version = \"{constraint}\"\n}}\nmodule \"plain\" {{\n  source = \
         \"{}\"\n}}\noutput \"said\" {{\n  value = \"${{module.net.said}}, ${{module.plain.said}}\"\n}}\n{more}",
        server.host(),
        server.url("/plain.zip")
    )
}

const SAID: &str = "said = \"net 1.2.0 nested, from a file\"";

#[test]
fn modules_in_a_pack_need_no_network_and_no_init() {
    if !Site::is_possible("modules_in_a_pack_need_no_network_and_no_init") {
        return;
    }
    let server = registry();
    let a = crate::workspace(&server, &calls(&server, "~> 1.0", ""));
    let on_a = |args: &[&str]| a.run_program(support::lean(), args);
    on_a(&["pack", "-no-color", "-modules", "-out=site"])
        .ok()
        .shows(&["carries 3 packages"]);
    assert!(!a.exists(".terraform"), "the working directory stays as it is");
    let host = server.host();
    on_a(&["pack", "-no-color", "-list", "site"]).ok().shows(&[
        &format!("{host}/acme/net/aws 1.2.0"),
        "/nested.zip",
        "/plain.zip",
    ]);
    on_a(&["pack", "-no-color", "-verify", "site"]).ok();
    // The same inputs give the same bytes, even if the modules are copied from a pack.
    on_a(&["pack", "-no-color", "-modules", "-out=again"]).ok();
    on_a(&["pack", "-no-color", "-from=site", "-out=over"]).ok();
    let bytes = |name: &str| std::fs::read(a.dir().join(name)).expect("read");
    assert!(bytes("site") == bytes("again"), "packed again");
    assert!(bytes("site") == bytes("over"), "taken over");

    let site = |configuration: &str| {
        let b = Site(Workspace::with(&[("main.tf", configuration)]));
        std::fs::copy(a.dir().join("site"), b.0.dir().join("site")).expect("a copy");
        b
    };
    // The modules are installed without `init`, which then has nothing to do.
    let b = site(&calls(&server, "~> 1.0", ""));
    b.run("site", &["validate"]).ok();
    b.run("site", &["apply", "-auto-approve"]).ok().shows(&[SAID]);
    assert!(b.0.exists(".terraform/modules/net/inner/main.tf"));
    assert!(b.0.exists(".terraform/modules/net.nested/main.tf"));
    b.run("site", &["init"]).ok();
    b.run("site", &["plan"]).ok().shows(&["No changes."]);
    // With another constraint, the installed version no longer fits, and the pack has no other version.
    b.0.write("main.tf", &calls(&server, ">= 2.0", ""));
    let command = format!("monoform pack -out=FILE \"-module={host}/acme/net/aws@>= 2.0\"");
    for command_line in [&["plan"][..], &["init"]] {
        let failed = b.run("site", command_line);
        failed.fails_with(&["module \"net\"", "does not allow: 1.2.0", &command]);
    }

    // `init` installs the modules, too, and names their source.
    let b = site(&calls(&server, "~> 1.0", ""));
    let init = b.run("site", &["init"]).ok();
    init.shows(&[
        &format!("Unpacking {host}/acme/net/aws 1.2.0 for net..."),
        "Initializing modules...",
    ]);
    b.run("site", &["plan"]).ok().shows(&[SAID]);

    // If the data directory cannot be written, the modules are unpacked into the user's cache directory.
    let b = Site(site(&calls(&server, "~> 1.0", "")).0.env("TF_DATA_DIR", "/proc/none"));
    b.run("site", &["plan"]).ok().shows(&[SAID]);
    b.run("site", &["plan"]).ok().shows(&[SAID]);
    assert!(b.0.exists("../home/.cache/monoform/packed/modules"));
    b.run("site", &["plan", "-out=saved"]).ok();
    b.run("site", &["apply", "saved"]).ok().shows(&[SAID]);
}

/// Module that reads its files with `file`, `templatefile`, `fileexists`, `filesha256`, `filebase64` and `fileset`.
const FUNCTIONS: &str = r#"
output "read" {
  value = join(" ", concat(
    [
      file("${path.module}/text.txt"),
      templatefile("${path.module}/../shared/hello.tftpl", { name = "Ada" }),
      file("${abspath(path.module)}/linked/deep.txt"),
      fileexists("${path.module}/none.txt") ? "there" : "not there",
      substr(filesha256("${path.module}/text.txt"), 0, 8),
      base64decode(filebase64("${path.module}/text.txt")),
    ],
    sort(fileset(path.module, "**/*.txt")),
    sort(fileset(path.root, ".terraform/modules/*/inner/main.tf")),
  ))
}
module "shared" {
  source = "../shared"
}
output "path" {
  value = "${path.module}, ${module.shared.path}"
}
"#;

#[test]
fn modules_are_read_from_memory_where_nothing_can_be_written() {
    if !Site::is_possible("modules_are_read_from_memory_where_nothing_can_be_written") {
        return;
    }
    let package = zip(&[
        ("inner/main.tf", FUNCTIONS.as_bytes()),
        ("inner/text.txt", b"text"),
        ("inner/linked/deep.txt", b"deep"),
        ("shared/hello.tftpl", b"hello ${name}"),
        ("shared/main.tf", b"output \"path\" {\n  value = path.module\n}\n"),
    ]);
    let server = Server::https(move |request| match request.path() {
        "/functions.zip" => Reply::ok(package.clone()),
        _ => Reply::status(404),
    });
    let configuration = format!(
        "module \"a\" {{\n  source = \"{url}//inner\"\n}}\nmodule \"b\" {{\n  source = \"{url}//i*r\"\n}}\n\
         output \"all\" {{\n  value = [module.a.read, module.a.path, module.b.path]\n}}\n",
        url = server.url("/functions.zip")
    );
    let a = crate::workspace(&server, &configuration);
    let on_a = |args: &[&str]| a.run_program(support::lean(), args).ok();
    on_a(&["pack", "-no-color", "-modules", "-out=site"]);
    let site = || {
        let b = Workspace::with(&[
            ("main.tf", &*configuration),
            (
                "tests/a.tftest.hcl",
                "run \"a\" {\n  assert {\n    condition     = length(output.all) == 3\n    error_message = \"\"\n  }\n}\n",
            ),
        ]);
        std::fs::copy(a.dir().join("site"), b.dir().join("site")).expect("a copy");
        Site(b.env("MONOFORM_UNPACK_DIR", "none"))
    };
    let shown = |ran: &support::Ran| {
        let text = ran.all();
        let lines = text.lines().map(str::trim).map(|line| line.trim_start_matches("+ "));
        lines
            .filter(|line| line.starts_with('"'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // The modules can be installed in this directory.
    let installed = site();
    let expected = shown(&installed.run("site", &["plan"]).ok());
    assert!(installed.0.exists(".terraform/modules/a/inner/text.txt"));
    let sum = "982d9e3e";
    let read = format!(
        "\"text hello Ada deep not there {sum} text linked/deep.txt text.txt .terraform/modules/a/inner/main.tf \
         .terraform/modules/b/inner/main.tf\","
    );
    let path = |name: &str| format!("\".terraform/modules/{name}/inner, .terraform/modules/{name}/shared\",");
    assert_eq!(expected, [read, path("a"), path("b")]);

    // The data directory is a dangling link, so no directory can be created in its place.
    let b = site();
    let data_dir = b.0.dir().join(".terraform");
    std::os::unix::fs::symlink("/proc/none", &data_dir).expect("a link");
    assert_eq!(shown(&b.run("site", &["plan"]).ok()), expected);
    b.run("site", &["validate"]).ok();
    b.run("site", &["test"]).ok().shows(&["1 passed"]);
    b.run("site", &["plan", "-out=saved"]).ok();
    assert_eq!(shown(&b.run("site", &["show", "saved"]).ok()), expected);
    b.run("site", &["apply", "saved"]).ok();
    assert_eq!(shown(&b.run("site", &["output"]).ok()), expected);
    b.run("site", &["plan"]).ok().shows(&["No changes."]);
    // A module that the pack lacks is still an error.
    b.0.write("main.tf", &configuration.replace("functions", "others"));
    b.run("site", &["plan"])
        .fails_with(&["This executable carries other modules, but not", "/others.zip"]);
    assert!(data_dir.is_symlink() && !data_dir.exists());
}

#[test]
fn modules_that_tests_name_are_carried() {
    let server = registry();
    let run = format!(
        "run \"a\" {{\n  module {{\n    source  = \"{}/acme/net/aws\"\n    version = \"~> 1.0\"\n  }}\n  assert {{\n    condition     = \
         output.said == \"net 1.2.0 nested\"\n    error_message = \"it says ${{output.said}}\"\n  }}\n}}\n",
        server.host()
    );
    let files = [("main.tf", "# nothing\n"), ("tests/a.tftest.hcl", run.as_str())];
    let a = crate::workspace(&server, "# nothing\n");
    a.write("tests/a.tftest.hcl", &run);
    a.run_program(support::lean(), &["pack", "-no-color", "-modules", "-out=site"])
        .ok()
        .shows(&["carries 2 packages"]);
    let b = Workspace::with(&files);
    let site = a.dir().join("site");
    b.run_program(&site, &["test", "-no-color"]).ok().shows(&["1 passed"]);
    b.run_program(&site, &["test", "-no-color"]).ok().shows(&["1 passed"]);
    // Modules that another command installs for a new call do not change the existing ones.
    let call = format!("module \"plain\" {{\n  source = \"{}\"\n}}\n", server.url("/plain.zip"));
    b.write("main.tf", &call);
    b.run_program(&site, &["plan", "-no-color"])
        .fails_with(&["This executable carries other modules"]);
    b.write("main.tf", "# nothing\n");
    b.run_program(&site, &["test", "-no-color"]).ok().shows(&["1 passed"]);
}

#[test]
fn a_module_that_a_pack_lacks_is_carried_by_the_command_in_the_error() {
    let test = "a_module_that_a_pack_lacks_is_carried_by_the_command_in_the_error";
    if !Site::is_possible(test) {
        return;
    }
    let server = registry();
    let lean = support::lean();
    let a = crate::workspace(
        &server,
        &format!("module \"plain\" {{\n  source = \"{}\"\n}}\n", server.url("/plain.zip")),
    );
    let on_a = |args: &[&str]| a.run_program(lean, args);
    on_a(&["pack", "-no-color", "-modules", "-out=site"]).ok();
    let b = Site(Workspace::with(&[("main.tf", &calls(&server, "~> 1.0", ""))]));
    let carry = |name: &str| std::fs::copy(a.dir().join(name), b.0.dir().join(name)).expect("a copy");
    carry("site");
    let planned = b
        .run("site", &["plan"])
        .fails_with(&["This executable carries other modules, but not", "acme/net/aws"]);
    let text = planned.all();
    let line = text.lines().find(|line| line.contains("monoform pack"));
    let line = line.expect("a command").trim_matches(['\u{2502}', ' ']);
    let line = line.replace("monoform ", &format!("'{}' ", lean.display()));
    let line = format!("{} -from=site -since=site", line.replace("FILE", "update"));
    a.run_program("sh", &["-c", &line]).ok();
    carry("update");
    b.run("site", &["pack", "-update=update", "-out=newer"]).ok();
    b.run("newer", &["apply", "-auto-approve"]).ok().shows(&[SAID]);
    // The update contains only the new parts, without the executable.
    let length = |name: &str| std::fs::metadata(a.dir().join(name)).expect("a file").len();
    assert!(length("update") * 10 < length("site"), "{}", length("update"));
}

#[test]
fn the_modules_of_a_pack_make_a_mirror() {
    let server = registry();
    let a = crate::workspace(&server, &calls(&server, "1.0.0", ""));
    let on_a = |args: &[&str]| a.run_program(support::lean(), args);
    // The installed version is packed, although a newer one exists.
    on_a(&["init", "-no-color"]).ok();
    a.write("main.tf", &calls(&server, "~> 1.0", ""));
    on_a(&["pack", "-no-color", "-modules", "-out=site"]).ok();
    on_a(&["pack", "-no-color", "-list", "site"])
        .ok()
        .shows(&["acme/net/aws 1.0.0"]);
    on_a(&["unpack", "-from=site", "mirror"])
        .ok()
        .shows(&["acme/net/aws 1.0.0"]);
    on_a(&["unpack", "-from=site", "mirror"]).ok();
    let b = Workspace::with(&[("main.tf", &calls(&server, "~> 1.0", ""))]);
    let mirror = format!("-mirror={}", a.dir().join("mirror").display());
    b.run(&["init", "-no-color", &mirror]).ok();
    b.run(&["plan", "-no-color"]).ok().shows(&["net 1.0.0 nested"]);
    for (value, text) in [
        ("./here", "is part of the configuration"),
        ("acme/net/aws@what", "Invalid module argument"),
    ] {
        on_a(&["pack", "-no-color", "-out=x", &format!("-module={value}")]).fails_with(&[text]);
    }
}
