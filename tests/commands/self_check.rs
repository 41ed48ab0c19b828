//! `self-check` of an executable without a pack, and the manual page. Packs are tested in `tests/install`.

use std::io::Write as _;
use std::process::Stdio;

use support::{Workspace, lean, monoform, needs};

pub const TESTS: &[(&str, fn())] = &[
    ("self_check::says_what_the_executable_is", whole),
    ("self_check::finds_a_copy_that_was_cut_off", cut_off),
    ("self_check::compares_an_executable_with_its_own_checksum", sealed),
    ("manual::is_shown_by_man", manual),
];

fn whole() {
    let w = Workspace::new();
    let text = w.run(&["self-check", "-no-color"]).ok();
    assert!(!text.all().contains("Nothing is damaged"), "{}", text.all());
    text.shows(&[
        "Built-in providers:\n",
        "hashicorp/random v",
        "Built-in backends:\n",
        " local, ",
        "The bytes of the executable were not checked: it has no checksum of its own.",
    ]);
    let found = w.run(&["self-check", "-json"]).ok().json();
    assert_eq!(
        (&found["whole"], &found["pack"]),
        (&true.into(), &serde_json::Value::Null)
    );
    let version = w.run(&["version", "-json"]).ok().json();
    assert_eq!(found["executable"]["platform"], version["platform"]);
    assert_eq!(found["executable"]["version"], version["monoform_version"]);
    assert_eq!(found["executable"]["checksum"], "not checked");
    // The system's tools confirm the properties of this build.
    if let Some(readelf) = needs("readelf", "self_check::whole") {
        let segments = w.run_program(readelf, &["-lW", monoform()]).ok().stdout;
        let expected = if segments.contains("INTERP") {
            "dynamic"
        } else {
            "static"
        };
        assert_eq!(found["executable"]["linking"], expected);
    }
    w.write("key.pem", "no key");
    w.run(&["self-check", "-trust=key.pem"])
        .fails_with(&["The key cannot be read", "There is no signature"]);
    w.run(&["self-check", "x"])
        .fails_with(&["Too many command line arguments"]);
}

fn cut_off() {
    use std::os::unix::fs::PermissionsExt as _;
    let w = Workspace::new();
    let mut bytes = std::fs::read(lean()).expect("the executable");
    // The last part of the file is the section table, which is not loaded.
    bytes.truncate(bytes.len() - 64);
    let copy = w.dir().join("monoform");
    std::fs::write(&copy, bytes).expect("a copy");
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let found = w.run_program(&copy, &["self-check", "-json"]);
    assert_eq!(found.status, 1, "{}", found.all());
    let found = found.json();
    assert_eq!(found["whole"], false);
    assert!(
        found["problems"].to_string().contains("was not copied as a whole"),
        "{found:#}"
    );
}

fn sealed() {
    let w = Workspace::new();
    let copy = w.dir().join("sealed");
    std::fs::copy(lean(), &copy).expect("a copy");
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/seal");
    w.run_program(&script, &["sealed"]).ok();
    w.run_program(&script, &["sealed"])
        .fails_with(&["has its checksum already"]);
    let check = |program: &str| w.run_program(w.dir().join(program), &["self-check", "-json"]);
    let found = check("sealed").ok().json();
    assert_eq!(
        (&found["whole"], &found["executable"]["checksum"]),
        (&true.into(), &"matches".into())
    );
    w.run_program(&copy, &["self-check", "-no-color"])
        .ok()
        .shows(&["Success! Nothing is damaged."]);
    let whole = std::fs::read(&copy).expect("read");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::copy(&copy, w.dir().join(name)).expect("a copy with its mode");
        std::fs::write(w.dir().join(name), bytes).expect("written");
    };
    // Changes a byte that is not executed, in the section table before the checksum.
    let mut changed = whole.clone();
    let at = changed.len() - 82 - 8;
    changed[at] ^= 1;
    write("changed", &changed);
    let found = check("changed");
    assert_eq!(found.status, 1, "{}", found.all());
    let found = found.json();
    assert_eq!(
        (&found["whole"], &found["executable"]["checksum"]),
        (&false.into(), &"differs".into())
    );
    // Cuts the file inside the checksum.
    write("short", &whole[..whole.len() - 30]);
    let found = check("short");
    assert_eq!(found.status, 1, "{}", found.all());
    assert!(found.all().contains("was not copied as a whole"), "{}", found.all());
    // In a pack, the checksum belongs to the executable part. A pack that was cut off is still recognized as a pack.
    w.write("main.tf", "");
    w.write("c.tfrc", "disable_checkpoint = true\n");
    w.run_program(&copy, &["pack", "-cli-config=c.tfrc", "-out=packed", "-no-color"])
        .ok();
    let found = check("packed").ok().json();
    assert_eq!(
        (&found["whole"], &found["executable"]["checksum"]),
        (&true.into(), &"matches".into())
    );
    let packed = std::fs::read(w.dir().join("packed")).expect("read");
    assert!(packed.starts_with(&whole), "the executable as it is");
    write("half", &packed[..packed.len() - 10]);
    let found = check("half");
    assert!(found.all().contains("its end is missing"), "{}", found.all());
}

/// The formatter prints no warnings about the page, and shows commands and flags as they are written.
fn manual() {
    let w = Workspace::new();
    let page = w.run(&["help", "man"]).ok().stdout;
    let Some(groff) = needs("groff", "manual::is_shown_by_man") else {
        return;
    };
    let mut shown = w
        .command(groff)
        .args(["-man", "-Tutf8", "-ww", "-P-c", "-rLL=100n"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("groff starts");
    let mut input = shown.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || input.write_all(page.as_bytes()));
    let ran = support::ran(shown.wait_with_output().expect("its output")).ok();
    writer.join().expect("the writer").expect("written");
    assert!(ran.stderr.is_empty(), "{}", ran.all());
    let plain: String = {
        // The formatter prints bold letters twice, with a backspace between them.
        let mut out: Vec<char> = Vec::new();
        let mut letters = ran.stdout.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{8}' => {
                    out.pop();
                    out.extend(letters.next());
                }
                letter => out.push(letter),
            }
        }
        out.into_iter().collect()
    };
    for text in [
        "monoform - infrastructure as code",
        "state mv",
        "-var='NAME=VALUE'",
        "monoform plan -out=tfplan",
    ] {
        assert!(plain.contains(text), "{text:?} is not in\n{plain}");
    }
}
