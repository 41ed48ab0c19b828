//! Tests of many calls over one connection at a time, on a real socket.
#![cfg(unix)]
// Helpers of tests fail by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod fake;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use cty::Value;
use fake::Fake;
use provider::Provider;
use plugins::grpc::Methods;
use plugins::grpc_provider::GrpcProvider;
use plugins::handshake::Address;
use plugins::launch::attach;
use plugins::peer::{MAX_CALLS, PluginConnection};
use proto::tfplugin6 as pb;

const CALLS: usize = 20_000;

fn schema() -> pb::Schema {
    let id = pb::schema::Attribute {
        name: "id".into(),
        r#type: "\"string\"".into(),
        optional: true,
        ..Default::default()
    };
    let block = pb::schema::Block {
        attributes: vec![id],
        ..Default::default()
    };
    pb::Schema {
        version: 0,
        block: Some(block),
    }
}

fn fake() -> Fake {
    Fake::new()
        .on(
            "/tfplugin6.Provider/GetProviderSchema",
            |_: pb::get_provider_schema::Request| {
                Ok(pb::get_provider_schema::Response {
                    provider: Some(schema()),
                    resource_schemas: [("fake_thing".to_owned(), schema())].into(),
                    ..Default::default()
                })
            },
        )
        .on(
            "/tfplugin6.Provider/ValidateResourceConfig",
            |_: pb::validate_resource_config::Request| Ok(pb::validate_resource_config::Response::default()),
        )
        .serve()
}

fn provider(fake: &Fake) -> GrpcProvider {
    let channel = attach(Address::Unix(fake.socket().to_owned()));
    let connection = Arc::new(PluginConnection::new("provider \"acme/fake\"".into(), None));
    GrpcProvider::new(connection, channel, Methods::of(6), Arc::default(), "1.11.4".into())
}

type Call<'p> = Pin<Box<dyn Future<Output = bool> + 'p>>;

/// Begins `count` calls without looking for answers: each is polled once, and then no more. Returns them, and how many
/// have reached the server when no more do.
async fn begun<'p>(provider: &'p GrpcProvider, fake: &Fake, count: usize) -> (Vec<Call<'p>>, usize) {
    let config = Value::object([("id", Value::string("x"))]);
    let before = fake.calls();
    let mut calls: Vec<Call<'p>> = Vec::new();
    let mut reached = 0;
    while calls.len() < count {
        // No more at a time than the buffer of the channel takes.
        for _ in 0..500 {
            let config = config.clone();
            let call = async move { provider.validate_resource("fake_thing", config).await.is_ok() };
            let mut call: Call<'p> = Box::pin(tokio::task::unconstrained(call));
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            calls.push(call);
        }
        let mut waited = 0;
        // At the limit no more will come: a longer wait only costs time.
        let patience = if reached < MAX_CALLS { 500 } else { 3 };
        loop {
            let now = fake.calls() - before;
            if now >= calls.len() || (now == reached && waited > patience) {
                reached = now;
                break;
            }
            waited = if now == reached { waited + 1 } else { 0 };
            reached = now;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    (calls, reached)
}

/// The HTTP/2 library counts answers that arrived and are not read: too many of them closed the connection once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_answers_nobody_reads_are_bounded_and_all_answered() {
    let fake = fake();
    let provider = provider(&fake);
    provider.schema().await.unwrap();
    let (calls, reached) = begun(&provider, &fake, CALLS).await;
    // The request for the standard streams may be counted, too.
    assert!(
        (MAX_CALLS..=MAX_CALLS + 1).contains(&reached),
        "{reached} of {CALLS} calls reached the plugin before an answer was read"
    );
    let answers = futures::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|fine| **fine).count(), CALLS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_stop_does_not_wait_for_other_calls() {
    let fake = fake();
    let provider = provider(&fake);
    provider.schema().await.unwrap();
    let (calls, reached) = begun(&provider, &fake, MAX_CALLS + 1000).await;
    assert!(reached < calls.len());
    // The fake server does not know the request: its error comes while other calls wait.
    assert!(provider.stop().await.is_err());
    drop(calls);
}
