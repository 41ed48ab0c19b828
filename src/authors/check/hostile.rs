//! Malformed messages, which no host sends. The provider must answer each with a message or a status, and must not end.

use std::collections::BTreeSet;

use plugins::probe::{Answer, Probe};
use prost::Message as _;
use proto::tfplugin6::get_metadata;
use provider::ProviderSchema;

use super::requests::{described, service, start};
use super::{Outcome, Report, Subject, listed};

const GROUP: &str = "messages";

/// Method, with its names in protocols 5 and 6.
struct Method {
    five: &'static str,
    six: &'static str,
    /// Kind of name in the first field, if that field is a name.
    names: Option<Names>,
    /// Fields whose messages have encoded values.
    values: &'static [u32],
    /// True if the method has effects outside of the process. Such a method gets only messages that cannot be decoded.
    acts: bool,
}

#[derive(Clone, Copy)]
enum Names {
    Resources,
    Data,
    Ephemeral,
    Actions,
    Lists,
    Functions,
}

const fn method(
    five: &'static str,
    six: &'static str,
    names: Option<Names>,
    values: &'static [u32],
    acts: bool,
) -> Method {
    Method {
        five,
        six,
        names,
        values,
        acts,
    }
}

const METHODS: &[Method] = &[
    method("PrepareProviderConfig", "ValidateProviderConfig", None, &[1], false),
    method(
        "ValidateResourceTypeConfig",
        "ValidateResourceConfig",
        Some(Names::Resources),
        &[2],
        false,
    ),
    method(
        "ValidateDataSourceConfig",
        "ValidateDataResourceConfig",
        Some(Names::Data),
        &[2],
        false,
    ),
    method(
        "ValidateEphemeralResourceConfig",
        "ValidateEphemeralResourceConfig",
        Some(Names::Ephemeral),
        &[2],
        false,
    ),
    method(
        "ValidateListResourceConfig",
        "ValidateListResourceConfig",
        Some(Names::Lists),
        &[2, 3, 4],
        false,
    ),
    method(
        "ValidateActionConfig",
        "ValidateActionConfig",
        Some(Names::Actions),
        &[2],
        false,
    ),
    method(
        "UpgradeResourceState",
        "UpgradeResourceState",
        Some(Names::Resources),
        &[3],
        false,
    ),
    method(
        "UpgradeResourceIdentity",
        "UpgradeResourceIdentity",
        Some(Names::Resources),
        &[3],
        false,
    ),
    method("CallFunction", "CallFunction", Some(Names::Functions), &[2], false),
    method("Configure", "ConfigureProvider", None, &[2], true),
    method("ReadResource", "ReadResource", Some(Names::Resources), &[2], true),
    method(
        "PlanResourceChange",
        "PlanResourceChange",
        Some(Names::Resources),
        &[2, 3, 4],
        true,
    ),
    method(
        "ApplyResourceChange",
        "ApplyResourceChange",
        Some(Names::Resources),
        &[2, 3, 4],
        true,
    ),
    method("ReadDataSource", "ReadDataSource", Some(Names::Data), &[2], true),
];

pub async fn check(subject: &Subject<'_>, schema: &ProviderSchema, report: &mut Report) {
    let protocols = report.protocols.clone();
    let Ok(mut probe) = Probe::start(&start(subject, &protocols)).await else {
        return;
    };
    metadata(&probe, subject, schema, report).await;
    for method in METHODS {
        let name = if probe.protocol == 5 { method.five } else { method.six };
        let messages = messages(method, schema);
        let mut failed = Vec::new();
        for (what, message) in &messages {
            let answer = probe.call(&service(&probe), name, message.clone(), subject.limit).await;
            let is_answered = matches!(answer, Answer::Message(_) | Answer::Refused(..));
            if is_answered && probe.is_running() {
                continue;
            }
            failed.push(format!("{what}: {}", explained(name, &answer, &mut probe)));
            let Ok(next) = Probe::start(&start(subject, &protocols)).await else {
                break;
            };
            probe = next;
        }
        let problem = (!failed.is_empty()).then(|| failed.join(" "));
        report.judge(
            GROUP,
            format!("{name} answers {} malformed messages", messages.len()),
            problem,
        );
    }
    let answer = probe
        .call(&service(&probe), "NoSuchMethod", Vec::new(), subject.limit)
        .await;
    let is_refused = matches!(answer, Answer::Refused(..));
    report.judge(
        GROUP,
        "a request of a later protocol is refused",
        (!is_refused).then(|| described("NoSuchMethod", &answer)),
    );
}

fn explained(method: &str, answer: &Answer, probe: &mut Probe) -> String {
    let log = probe.log();
    let panic = log
        .lines()
        .find(|line| line.starts_with("panic: ") || line.contains("panicked at"));
    match (probe.is_running(), panic) {
        (true, _) => described(method, answer),
        (false, Some(panic)) => format!("The process ended: {panic}."),
        (false, None) => "The process ended.".to_owned(),
    }
}

/// Compares the answer to GetMetadata with the schemas.
async fn metadata(probe: &Probe, subject: &Subject<'_>, schema: &ProviderSchema, report: &mut Report) {
    let name = "GetMetadata agrees with the schemas";
    let answer = probe
        .call(&service(probe), "GetMetadata", Vec::new(), subject.limit)
        .await;
    let bytes = match answer {
        Answer::Message(bytes) => bytes,
        Answer::Refused(code, _) if code == "Unimplemented" => {
            let detail = "The provider has no GetMetadata, so hosts fetch all schemas.";
            return report.add(GROUP, name, Outcome::Skipped, detail);
        }
        other => return report.add(GROUP, name, Outcome::Failed, described("GetMetadata", &other)),
    };
    let answered = match get_metadata::Response::decode(bytes.as_slice()) {
        Ok(answered) => answered,
        Err(error) => {
            return report.add(
                GROUP,
                name,
                Outcome::Failed,
                format!("The answer cannot be read: {error}."),
            );
        }
    };
    let mut wrong = Vec::new();
    let mut compare = |kind: &str, announced: BTreeSet<String>, has: BTreeSet<String>| {
        for one in announced.symmetric_difference(&has) {
            let only = if has.contains(one) { "schemas" } else { "metadata" };
            wrong.push(format!("{kind} {one} (in the {only} only)"));
        }
    };
    fn keys<T>(all: &provider::SchemaMap<T>) -> BTreeSet<String> {
        all.keys().map(ToString::to_string).collect()
    }
    let types = answered.resources.into_iter().map(|one| one.type_name);
    compare("resource", types.collect(), keys(&schema.resources));
    let types = answered.data_sources.into_iter().map(|one| one.type_name);
    compare("data source", types.collect(), keys(&schema.data_sources));
    let types = answered.ephemeral_resources.into_iter().map(|one| one.type_name);
    compare("ephemeral resource", types.collect(), keys(&schema.ephemeral));
    let types = answered.functions.into_iter().map(|one| one.name);
    compare("function", types.collect(), keys(&schema.functions));
    let types = answered.actions.into_iter().map(|one| one.type_name);
    compare("action", types.collect(), keys(&schema.actions));
    let types = answered.list_resources.into_iter().map(|one| one.type_name);
    compare("list resource", types.collect(), keys(&schema.lists));
    let problem = (!wrong.is_empty()).then(|| format!("Metadata and schemas differ: {}.", listed(&wrong)));
    report.judge(GROUP, name, problem);
}

/// Encodes a field of a protobuf message: its number, its length, and these bytes.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(u64::from(number << 3 | 2), &mut out);
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

/// Invalid encoded values, each with its description.
fn junk() -> Vec<(&'static str, Vec<u8>)> {
    let mut deep = vec![0x91; 20_000];
    deep.push(0xc0);
    vec![
        ("a value that is no msgpack", vec![0xc1]),
        ("a value that is cut off", vec![0x81, 0xa4, b'n', b'a']),
        ("a value of another type", vec![0x92, 1, 2]),
        ("an object with unknown attributes", b"\x81\xa7nothing\xc3".to_vec()),
        ("a value of 20,000 levels", deep),
        ("a length without content", vec![0xdd, 0xff, 0xff, 0xff, 0xff]),
        ("a text that is not UTF-8", vec![0xa2, 0xff, 0xfe]),
    ]
}

/// Returns the messages for a method, each with its description.
fn messages(method: &Method, schema: &ProviderSchema) -> Vec<(String, Vec<u8>)> {
    let mut out = vec![
        ("bytes that are no message".to_owned(), vec![0xff; 64]),
        ("a field that is cut off".to_owned(), vec![0x0a, 0xff, 0xff, 0x03, b'x']),
    ];
    if !method.acts {
        // Some libraries skip such fields, so that the message is an empty one to them.
        let numbers = vec![0x08, 0x01, 0x10, 0x01, 0x18, 0x01];
        out.push(("fields of another kind".to_owned(), numbers));
        out.push(("an empty message".to_owned(), Vec::new()));
    }
    let real = match method.names {
        None => Some(Vec::new()),
        Some(names) => {
            out.push(("an unknown name".to_owned(), field(1, b"nothing_of_that_name")));
            out.push(("a name that is not UTF-8".to_owned(), field(1, &[0xff, 0xfe])));
            let long = vec![b'x'; 1 << 20];
            out.push(("a name of 1 MiB".to_owned(), field(1, &long)));
            first(names, schema).map(|name| field(1, name.as_bytes()))
        }
    };
    let Some(real) = real else { return out };
    if !method.acts {
        out.push(("no value".to_owned(), real.clone()));
    }
    for (what, bytes) in junk() {
        // Field 1 of a value is msgpack, field 2 is JSON, which states have.
        for encoding in [1, 2] {
            let mut message = real.clone();
            for number in method.values {
                message.extend(field(*number, &field(encoding, &bytes)));
            }
            out.push((what.to_owned(), message));
        }
    }
    out
}

fn first(names: Names, schema: &ProviderSchema) -> Option<&str> {
    match names {
        Names::Resources => schema.resources.keys().next(),
        Names::Data => schema.data_sources.keys().next(),
        Names::Ephemeral => schema.ephemeral.keys().next(),
        Names::Actions => schema.actions.keys().next(),
        Names::Lists => schema.lists.keys().next(),
        Names::Functions => schema.functions.keys().next(),
    }
    .map(|name| &**name)
}
