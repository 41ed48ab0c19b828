//! `login` and `logout` compared with Terraform, if that is installed: the same requests, files and exit statuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{ChildStdout, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use support::server::{Reply, Request, Server, decoded};
use support::{Ran, Workspace, monoform, ran, which};

pub const TESTS: &[(&str, fn())] = &[
    ("login::by_a_code_that_a_browser_brings", by_code),
    ("login::by_a_token_that_is_copied_from_a_page", by_page),
    ("login::through_a_credentials_helper", by_helper),
    ("login::what_cannot_be", refusals),
    ("login::logout_forgets_one_host", logout),
    ("login::a_host_block_describes_the_service", host_block),
    ("login::a_browser_is_opened", browser),
];

/// Returns the programs to compare.
fn programs() -> Vec<String> {
    let theirs = which("terraform").map(|path| path.display().to_string());
    [Some(monoform().to_owned()), theirs].into_iter().flatten().collect()
}

type Bodies = Arc<Mutex<Vec<String>>>;

/// Starts a fake host that supports login by OAuth and by a token that the user pastes. It records the bodies of
/// requests for tokens.
fn host(services: &'static str) -> (Server, Bodies) {
    let bodies = Bodies::default();
    let posted = bodies.clone();
    let server = Server::https(move |request: &Request| match request.path() {
        "/.well-known/terraform.json" => Reply::json(services),
        "/token" => {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            assert_eq!(request.method(), "POST");
            let fine = body.contains("code=thecode&");
            posted.lock().expect("no panic").push(body);
            if fine {
                Reply::json(r#"{"access_token":"the-token","token_type":"bearer"}"#)
            } else {
                Reply::new(400, r#"{"error":"invalid_grant","error_description":"expired"}"#)
                    .with("Content-Type", "application/json")
            }
        }
        "/api/v2/ping" => Reply::status(204).with("TFP-API-Version", "2.6"),
        "/api/v2/account/details" => match request.header("authorization") {
            "Bearer page-token" => Reply::ok(
                r#"{"data":{"id":"user-1","type":"users","attributes":{"username":"ann","email":"a@b.example"}}}"#,
            )
            .with("Content-Type", "application/vnd.api+json"),
            _ => Reply::new(401, r#"{"errors":[{"status":"401","title":"unauthorized"}]}"#)
                .with("Content-Type", "application/vnd.api+json"),
        },
        _ => Reply::status(404),
    });
    (server, bodies)
}

const OAUTH: &str = r#"{"login.v1":{"client":"cli","grant_types":["authz_code"],"authz":"/authorize","token":"/token",
    "ports":[21000,21400],"scopes":["a","b"]}}"#;
const PAGE: &str = r#"{"tfe.v2":"/api/v2/"}"#;

fn directory(server: &Server) -> Workspace {
    let w = Workspace::new();
    std::fs::create_dir(w.home().join(".terraform.d")).expect("a directory");
    let certificate = w.home().join("ca.pem");
    std::fs::write(&certificate, &server.certificate).expect("the certificate");
    w.env("SSL_CERT_FILE", certificate.display().to_string())
}

fn name(server: &Server) -> String {
    server.host().replace("127.0.0.1", "localhost")
}

fn stored(w: &Workspace) -> Value {
    let path = w.home().join(".terraform.d/credentials.tfrc.json");
    let mode = std::fs::metadata(&path).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads it");
    serde_json::from_slice(&std::fs::read(path).expect("the file")).expect("JSON")
}

/// Runs a program with input; `watch` reads the beginning of its output.
fn with_input(
    w: &Workspace,
    program: &str,
    args: &[&str],
    input: &str,
    watch: impl FnOnce(&mut BufReader<ChildStdout>),
) -> Ran {
    let mut command = w.command(program);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut rest = String::new();
    for line in input.lines() {
        // Input that is written before Terraform asks for it is lost.
        if input.lines().count() > 1 {
            until_asked(&mut stdout, &mut rest);
        }
        // The program may have ended without a question.
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }
    drop(stdin);
    watch(&mut stdout);
    stdout.read_to_string(&mut rest).expect("text");
    let mut all = ran(child.wait_with_output().expect("it ends"));
    all.stdout = rest;
    all
}

/// Reads until another question or the end.
fn until_asked(stdout: &mut BufReader<ChildStdout>, seen: &mut String) {
    let mut line = Vec::new();
    while stdout.read_until(b':', &mut line).is_ok_and(|read| read > 0) && !line.ends_with(b"Enter a value:") {}
    seen.push_str(&String::from_utf8_lossy(&line));
}

/// Returns the address for the browser, with its parameters by name.
fn address(stdout: &mut BufReader<ChildStdout>) -> (String, Vec<(String, String)>) {
    for line in stdout.lines() {
        let line = line.expect("text").trim().to_owned();
        let Some((url, query)) = line.split_once('?').filter(|(url, _)| url.starts_with("https://")) else {
            continue;
        };
        let pairs = query.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').expect("a value");
            (name.to_owned(), decoded(&value.replace('+', " ")))
        });
        return (url.to_owned(), pairs.collect());
    }
    panic!("no address was printed");
}

/// Requests the address to which the host would redirect the browser after the login.
fn come_back(parameters: &[(String, String)], code: &str) {
    let get = |name: &str| &parameters.iter().find(|(n, _)| n == name).expect(name).1;
    let back = get("redirect_uri")
        .strip_prefix("http://localhost:")
        .expect("this machine");
    let (port, path) = back.split_once('/').expect("a path");
    let port: u16 = port.parse().expect("a port");
    assert!((21_000..=21_400).contains(&port) && path == "login", "{back}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it waits");
    let request = format!(
        "GET /{path}?code={code}&state={} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        get("state")
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    // Terraform may end its server before it has answered.
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    assert!(line.is_empty() || line.contains("200"), "{line}");
}

fn by_code() {
    let mut seen = Vec::new();
    for program in programs() {
        let (server, bodies) = host(OAUTH);
        let w = directory(&server);
        let host = name(&server);
        let mut names = String::new();
        let ran = with_input(&w, &program, &["login", &host], "yes\n", |stdout| {
            let (url, parameters) = address(stdout);
            assert_eq!(url, format!("https://{host}/authorize"));
            names = parameters.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(" ");
            let fixed: Vec<_> = parameters
                .iter()
                .filter(|(name, _)| !matches!(&**name, "state" | "redirect_uri" | "code_challenge"))
                .cloned()
                .collect();
            names.push_str(&format!(" {fixed:?}"));
            come_back(&parameters, "thecode");
        });
        assert_eq!(ran.status, 0, "{}", ran.all());
        assert!(ran.stdout.contains("Success!"), "{}", ran.all());
        assert_eq!(stored(&w), json!({"credentials": {&*host: {"token": "the-token"}}}));
        let body = bodies.lock().expect("no panic").join(" ");
        let mut sent: Vec<&str> = body.split('&').map(|p| p.split_once('=').expect("a value").0).collect();
        sent.sort_unstable();
        seen.push((names, sent.join(" ")));
        // The host rejects this code.
        let ran = with_input(&w, &program, &["login", &host], "YES\n", |stdout| {
            come_back(&address(stdout).1, "other");
        });
        ran.fails_with(&["Failed to obtain auth token", "invalid_grant", "expired"]);
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:#?}");
}

fn by_page() {
    for program in programs() {
        let (server, _) = host(PAGE);
        let w = directory(&server);
        let host = name(&server);
        let ran = with_input(&w, &program, &["login", &host], "yes\n page-token \n", |_| ());
        assert_eq!(ran.status, 0, "{}", ran.all());
        assert!(
            ran.stdout.contains("/app/settings/tokens?source=terraform-login"),
            "{}",
            ran.all()
        );
        assert!(
            ran.stdout.contains("Retrieved token for user") && ran.stdout.contains("ann"),
            "{}",
            ran.all()
        );
        assert!(
            ran.stdout
                .contains(&format!("Logged in to Terraform Enterprise ({host})")),
            "{}",
            ran.all()
        );
        assert!(!ran.all().contains("page-token"), "{}", ran.all());
        assert_eq!(stored(&w)["credentials"][&*host]["token"], "page-token");
        let ran = with_input(&w, &program, &["login", &host], "yes\nwrong\n", |_| ());
        ran.fails_with(&["Token is invalid"]);
        assert_eq!(stored(&w)["credentials"][&*host]["token"], "page-token");
    }
}

fn by_helper() {
    for program in programs() {
        let (server, _) = host(PAGE);
        let w = directory(&server);
        let host = name(&server);
        let plugins = w.home().join(".terraform.d/plugins");
        std::fs::create_dir_all(&plugins).expect("a directory");
        let helper = plugins.join("terraform-credentials-box");
        let script = "#!/bin/sh\ncase \"$2\" in\nget) cat \"$HOME/box\" 2>/dev/null || echo '{}' ;;\nstore) cat > \"$HOME/box\" \
                      ;;\nforget) rm \"$HOME/box\" ;;\nesac\n";
        std::fs::write(&helper, script).expect("a script");
        std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("a program");
        std::fs::write(
            w.home().join(".terraformrc"),
            "credentials_helper \"box\" {\n  args = [\"x\"]\n}\n",
        )
        .expect("the configuration");
        let ran = with_input(&w, &program, &["login", &host], "yes\npage-token\n", |_| ());
        assert_eq!(ran.status, 0, "{}", ran.all());
        assert!(ran.stdout.contains("\"box\""), "{}", ran.all());
        let kept = std::fs::read(w.home().join("box")).expect("what the helper was given");
        let kept: Value = serde_json::from_slice(&kept).expect("JSON");
        assert_eq!(kept, json!({"token": "page-token"}));
        assert!(!w.home().join(".terraform.d/credentials.tfrc.json").exists());
        w.run_program(&program, &["logout", &host]).ok();
        assert!(!w.home().join("box").exists());
        w.run_program(&program, &["logout", &host])
            .fails_with(&["Failed to remove API token"]);
    }
}

fn refusals() {
    let (server, _) = host(PAGE);
    let (nothing, _) = host("{}");
    let (broken, _) = host(r#"{"login.v1":{"client":"cli","token":"/token"}}"#);
    let (later, _) = host(r#"{"login.v2":{}}"#);
    let (password, _) = host(r#"{"login.v1":{"client":"c","token":"/token","grant_types":["password"]}}"#);
    for program in programs() {
        let w = directory(&server);
        let run = |args: &[&str], input: &str| with_input(&w, &program, args, input, |_| ());
        let host = name(&server);
        assert_eq!(run(&["login", "a", "b"], "").status, 1);
        run(&["login", "-input=false"], "").fails_with(&["Login is an interactive command"]);
        run(&["login", "a b"], "").fails_with(&["Invalid hostname"]);
        run(&["login", &name(&nothing)], "").fails_with(&["Service discovery failed for"]);
        run(&["login", &host], "no\n").fails_with(&["Login cancelled"]);
        assert_eq!(run(&["login", &host], "").status, 1);
        for (server, expected) in [
            (&nothing, "Host does not support Terraform tokens API"),
            (&broken, "Host does not support Terraform login"),
            (&later, "Host does not support Terraform login"),
            (&password, "Host does not support Terraform login"),
        ] {
            let w = directory(server);
            let ran = with_input(&w, &program, &["login", &name(server)], "yes\n", |_| ());
            assert_eq!(ran.status, 1, "{}", ran.all());
            assert!(ran.all().contains(expected), "{}", ran.all());
        }
        std::fs::write(
            w.home().join(".terraformrc"),
            format!("credentials \"{host}\" {{\n  token = \"x\"\n}}\n"),
        )
        .expect("the configuration");
        let text = format!("Credentials for {host} are manually configured");
        run(&["login", &host], "yes\n").fails_with(&[&text]);
        run(&["logout", &host], "").fails_with(&[&text]);
        // The file cannot be written because its directory is missing.
        std::fs::remove_file(w.home().join(".terraformrc")).expect("it is there");
        std::fs::remove_dir_all(w.home().join(".terraform.d")).expect("it is there");
        run(&["login", &host], "yes\npage-token\n").fails_with(&["Failed to save API token"]);
    }
}

fn logout() {
    for program in programs() {
        let (server, _) = host(PAGE);
        let w = directory(&server);
        let path = w.home().join(".terraform.d/credentials.tfrc.json");
        let before = json!({"credentials": {"A.example": {"token": "1"}, "b.example": {"token": "2"}}, "x": 1});
        std::fs::write(&path, before.to_string()).expect("the file");
        let ran = w.run_program(&program, &["logout", "a.example"]).ok();
        assert!(
            ran.stdout.contains("Removing the stored credentials for a.example"),
            "{}",
            ran.all()
        );
        assert!(
            ran.stdout.contains("has removed the stored API token for a.example."),
            "{}",
            ran.all()
        );
        assert_eq!(
            stored(&w),
            json!({"credentials": {"b.example": {"token": "2"}}, "x": 1})
        );
        let ran = w.run_program(&program, &["logout", "a.example"]).ok();
        assert_eq!(ran.stdout.trim(), "No credentials for a.example are stored.");
        w.run_program(&program, &["logout", "b.example"]).ok();
        assert_eq!(stored(&w), json!({"credentials": {}, "x": 1}));
        let ran = w.run_program(&program, &["logout"]).ok();
        assert_eq!(ran.stdout.trim(), "No credentials for app.terraform.io are stored.");
        assert_eq!(w.run_program(&program, &["logout", "a", "b"]).status, 1);
    }
}

/// The CLI configuration may have the services of a host that has no service discovery.
fn host_block() {
    let (server, _) = host("{}");
    for program in programs() {
        let w = directory(&server);
        let text = format!(
            "host \"h.example\" {{\n  services = {{\n    \"login.v1\" = {{\n      client = \"cli\"\n      authz = \"{0}\"\n      token \
             = \"{1}\"\n      ports = [21000, 21400]\n    }}\n  }}\n}}\n",
            server.url("/authorize"),
            server.url("/token").replace("127.0.0.1", "localhost")
        );
        std::fs::write(w.home().join(".terraformrc"), text).expect("the configuration");
        let ran = with_input(&w, &program, &["login", "h.example"], "yes\n", |stdout| {
            come_back(&address(stdout).1, "thecode");
        });
        assert_eq!(ran.status, 0, "{}", ran.all());
        assert_eq!(
            stored(&w),
            json!({"credentials": {"h.example": {"token": "the-token"}}})
        );
    }
}

fn browser() {
    for program in programs() {
        let (server, _) = host(OAUTH);
        let w = directory(&server);
        let bin = w.home().join("bin");
        std::fs::create_dir(&bin).expect("a directory");
        let opener = bin.join("xdg-open");
        std::fs::write(&opener, "#!/bin/sh\necho \"$1\" > \"$HOME/opened\"\n").expect("a script");
        std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let path = std::env::var("PATH").unwrap_or_default();
        let w = w.env("PATH", format!("{}:{path}", bin.display()));
        let home = w.home();
        with_input(&w, &program, &["login", &name(&server)], "yes\n", |stdout| {
            let (url, parameters) = address(stdout);
            let opened = std::fs::read_to_string(home.join("opened")).expect("what was opened");
            assert!(opened.starts_with(&url), "{opened}");
            come_back(&parameters, "thecode");
        })
        .ok();
    }
}
