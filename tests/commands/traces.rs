//! Traces for OpenTelemetry: which spans a collector gets, and that a missing collector changes nothing.

use std::sync::{Arc, Mutex};

use support::ports::ClosedPort;
use support::server::{Reply, Server};
use support::{Ran, Workspace, monoform, ran};

pub const TESTS: &[(&str, fn())] = &[
    (
        "traces::collector_gets_the_spans_of_a_command",
        collector_gets_the_spans,
    ),
    (
        "traces::requests_to_other_hosts_have_spans_and_continue_the_trace",
        requests_to_other_hosts_have_spans_and_continue_the_trace,
    ),
    (
        "traces::command_without_a_collector_succeeds",
        command_without_a_collector_succeeds,
    ),
    (
        "traces::nothing_is_sent_unless_it_is_asked_for",
        nothing_is_sent_unless_it_is_asked_for,
    ),
];

const MAIN: &str = r#"
resource "terraform_data" "a" {
  provisioner "local-exec" {
    command = "echo $TRACEPARENT > parent"
  }
}
"#;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn run(w: &Workspace, endpoint: &str, variables: &[(&str, &str)], args: &[&str]) -> Ran {
    let mut command = w.command(monoform());
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .envs(variables.iter().copied())
        .args(args);
    ran(command.output().expect("the program starts"))
}

/// Starts a collector. Returns it, and the bodies of the requests that it gets.
fn collector() -> (Server, Arc<Mutex<Vec<Vec<u8>>>>) {
    let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let received = bodies.clone();
    let server = Server::http(move |request| {
        assert_eq!(
            (request.method(), request.path(), request.header("x-key")),
            ("POST", "/v1/traces", "a b")
        );
        assert_eq!(request.header("content-type"), "application/x-protobuf");
        received.lock().expect("the bodies").push(request.body.clone());
        Reply::ok("")
    });
    (server, bodies)
}

fn has(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

fn collector_gets_the_spans() {
    let (server, bodies) = collector();
    let w = Workspace::with(&[("main.tf", MAIN)]);
    let variables = [
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
        ("OTEL_SERVICE_NAME", "pipeline-7"),
        ("TRACEPARENT", PARENT),
    ];
    run(&w, &server.url(""), &variables, &["apply", "-auto-approve"]).ok();
    let sent = bodies.lock().expect("the bodies").clone();
    let [body] = sent.as_slice() else {
        panic!("{} requests", sent.len());
    };
    for text in [
        "service.name",
        "pipeline-7",
        "monoform",
        "Apply",
        "Plan phase",
        "Plan resource instance changes",
        "Apply phase",
        "Apply resource instance changes",
        "opentofu.resource_instance.address",
        "terraform_data.a",
        "Run provisioner",
    ] {
        assert!(has(body, text.as_bytes()), "{text}");
    }
    let bytes = |text: &str| -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2);
        let digits = pairs.map(|pair| std::str::from_utf8(pair).expect("digits"));
        digits
            .map(|pair| u8::from_str_radix(pair, 16).expect("a byte"))
            .collect()
    };
    assert!(has(body, &bytes(TRACE)) && has(body, &bytes("00f067aa0ba902b7")));
    // Programs of provisioners continue the trace, below a span of this command.
    let parent = w.read("parent");
    assert!(
        parent.starts_with(&format!("00-{TRACE}-")) && parent.trim() != PARENT,
        "{parent}"
    );
    let span = parent.split('-').nth(2).expect("a span");
    assert!(has(body, &bytes(span)), "{parent}");
    // A failure is part of the trace, too.
    w.write("main.tf", "output \"a\" {\n  value = nothing.here\n}\n");
    assert_eq!(run(&w, &server.url(""), &variables, &["plan"]).status, 1);
    let sent = bodies.lock().expect("the bodies").clone();
    assert!(sent.len() == 2 && has(&sent[1], b"exit status 1"));
}

fn requests_to_other_hosts_have_spans_and_continue_the_trace() {
    let (collector, bodies) = collector();
    let parents: Arc<Mutex<Vec<String>>> = Arc::default();
    let received = parents.clone();
    let modules = Server::http(move |request| {
        received
            .lock()
            .expect("the parents")
            .push(request.header("traceparent").to_owned());
        Reply::status(404)
    });
    let source = modules.url("/m.zip?signature=secret");
    let main = format!("module \"m\" {{\n  source = \"{source}\"\n}}\n");
    let w = Workspace::with(&[("main.tf", &main)]);
    let variables = [
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
        ("TRACEPARENT", PARENT),
    ];
    assert_eq!(run(&w, &collector.url(""), &variables, &["init"]).status, 1);
    let sent = bodies.lock().expect("the bodies").concat();
    let path = modules.url("/m.zip");
    for text in [
        "HTTP GET",
        "http.request.method",
        "url.full",
        &path,
        "server.address",
        "http.response.status_code",
        "404 Not Found",
    ] {
        assert!(has(&sent, text.as_bytes()), "{text}");
    }
    assert!(!has(&sent, b"signature=secret"));
    let with = std::mem::take(&mut *parents.lock().expect("the parents"));
    assert!(
        !with.is_empty() && with.iter().all(|parent| parent.starts_with(&format!("00-{TRACE}-"))),
        "{with:?}"
    );
    // Without a trace, nothing is added to requests.
    assert_eq!(run(&w, &collector.url(""), &[], &["init"]).status, 1);
    let without = parents.lock().expect("the parents").clone();
    assert!(
        !without.is_empty() && without.iter().all(String::is_empty),
        "{without:?}"
    );
}

fn command_without_a_collector_succeeds() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    let closed = ClosedPort::new();
    let endpoint = format!("http://127.0.0.1:{}", closed.port());
    let variables = [("OTEL_TRACES_EXPORTER", "otlp"), ("TF_LOG", "WARN")];
    let ran = run(&w, &endpoint, &variables, &["apply", "-auto-approve"]).ok();
    assert!(
        ran.stdout.contains("Apply complete!") && ran.stderr.contains("the trace was not sent"),
        "{}",
        ran.all()
    );
    // Spans that cannot be sent are not recorded.
    let variables = [variables[0], variables[1], ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    let ran = run(&w, &endpoint, &variables, &["plan"]).ok();
    assert!(ran.stderr.contains("by http/protobuf only"), "{}", ran.all());
}

fn nothing_is_sent_unless_it_is_asked_for() {
    let (server, bodies) = collector();
    let w = Workspace::with(&[("main.tf", MAIN)]);
    run(&w, &server.url(""), &[], &["apply", "-auto-approve"]).ok();
    assert!(bodies.lock().expect("the bodies").is_empty());
    assert_eq!(w.read("parent").trim(), "");
}
