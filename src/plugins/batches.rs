//! Calls in batches, for providers that announce them: see `proto/calls.proto` for what travels, and why.
//!
//! A call is given to the task that writes to the connection, which sends all that have come since it last wrote in one message.
//! Another task reads the answers, and hands each to whoever waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt as _;
use prost::Message;
use prost::bytes::Bytes;
use proto::calls::provider_calls_client::ProviderCallsClient;
pub(crate) use proto::calls::request::Method;
use proto::calls::{Answer, Answers, Request, Requests};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::channel::MESSAGE_LIMIT;

/// A request from this size on is a call of its own: it gains nothing, and a message has a limit.
pub(crate) const LARGE: usize = 1 << 20;
/// How many calls are sent in one message. With [`LARGE`], a quarter of [`MESSAGE_LIMIT`].
const TOGETHER: usize = 64;

/// An open stream of calls. How many are in flight is bounded by who makes them.
pub(crate) struct Batches {
    requests: mpsc::UnboundedSender<Request>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Calls that have no answer yet.
#[derive(Default)]
struct Waiting {
    last: u64,
    calls: HashMap<u64, oneshot::Sender<Result<Bytes, Status>>>,
    /// The error of all further calls, once the stream has ended.
    ended: Option<Status>,
}

/// Asks the provider to stop a call when its caller goes away before the answer has come.
struct Caller<'a> {
    batches: &'a Batches,
    number: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if lock(&self.batches.waiting).calls.remove(&self.number).is_some() {
            self.batches.send(self.number, Method::Cancel, Vec::new());
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batches {
    /// Opens the stream. Its answers are read on this runtime: that of the caller may end before the provider does.
    pub(crate) async fn open(channel: Channel, runtime: &Handle) -> Result<Batches, Status> {
        let (requests, calls) = mpsc::unbounded_channel();
        let calls = UnboundedReceiverStream::new(calls).ready_chunks(TOGETHER);
        let mut client = ProviderCallsClient::new(channel)
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        let answers = client.exchange(calls.map(|requests| Requests { requests })).await?;
        let waiting = Arc::<Mutex<Waiting>>::default();
        runtime.spawn(hand_out(answers.into_inner(), Answering(waiting.clone())));
        Ok(Batches { requests, waiting })
    }

    /// Sends a call whose message this is, and waits for its answer.
    pub(crate) async fn call<A: Message + Default>(&self, method: Method, message: Vec<u8>) -> Result<A, Status> {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut waiting = lock(&self.waiting);
            if let Some(status) = &waiting.ended {
                return Err(status.clone());
            }
            waiting.last += 1;
            let number = waiting.last;
            waiting.calls.insert(number, sender);
            number
        };
        let _caller = Caller { batches: self, number };
        self.send(number, method, message);
        let answer = receiver.await.unwrap_or_else(|_| Err(ended()))?;
        A::decode(answer).map_err(|error| Status::internal(error.to_string()))
    }

    fn send(&self, number: u64, method: Method, message: Vec<u8>) {
        let request = Request {
            number,
            method: method.into(),
            message: message.into(),
        };
        // It fails when the stream has ended, which is told to all who wait.
        drop(self.requests.send(request));
    }
}

fn ended() -> Status {
    Status::unavailable("the provider ended the stream of calls")
}

/// Those who wait for answers of a stream, which are told when no more are read.
struct Answering(Arc<Mutex<Waiting>>);

impl Answering {
    fn end(&self, status: &Status) {
        let mut waiting = lock(&self.0);
        waiting.ended.get_or_insert_with(|| status.clone());
        for (_, caller) in waiting.calls.drain() {
            drop(caller.send(Err(status.clone())));
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.end(&ended());
    }
}

/// Gives each answer to the one who waits for it, and the end of the stream to all.
async fn hand_out(mut answers: Streaming<Answers>, answering: Answering) {
    let status = loop {
        match answers.message().await {
            Ok(Some(batch)) => {
                let mut waiting = lock(&answering.0);
                for answer in batch.answers {
                    if let Some(caller) = waiting.calls.remove(&answer.number) {
                        // It is not taken where the caller is just going away.
                        drop(caller.send(result(answer)));
                    }
                }
            }
            Ok(None) => break ended(),
            Err(status) => break status,
        }
    };
    answering.end(&status);
}

fn result(answer: Answer) -> Result<Bytes, Status> {
    match answer.failure {
        None => Ok(answer.message),
        Some(failure) => Err(Status::new(Code::from(failure.code), failure.text)),
    }
}
