//! Batched calls, for providers that announce them: `proto/calls.proto` defines the messages and explains the reason.
//!
//! A call goes to the task that writes to the connection, which sends every call that was queued since its last write in one message.
//! Another task reads the answers and hands each to its caller.

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

/// Size in bytes from which a request is sent on its own: batching saves it nothing, and the size of a message is
/// limited.
pub(crate) const LARGE: usize = 1 << 20;
/// Maximum number of calls in one message: with [`LARGE`], a quarter of [`MESSAGE_LIMIT`].
const TOGETHER: usize = 64;

/// Open stream of calls.
pub(crate) struct Batches {
    requests: mpsc::UnboundedSender<Request>,
    waiting: Arc<Mutex<Waiting>>,
}

/// Calls without an answer yet.
#[derive(Default)]
struct Waiting {
    last: u64,
    calls: HashMap<u64, oneshot::Sender<Result<Bytes, Status>>>,
    /// Error of all further calls, after the stream has ended.
    ended: Option<Status>,
}

/// Guard of a call, which cancels it at the provider if its future is dropped before the answer has come.
struct Caller<'a> {
    batches: &'a Batches,
    number: u64,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        // A call that is not in the table has its answer already, and must not be canceled.
        if lock(&self.batches.waiting).calls.remove(&self.number).is_some() {
            self.batches.send(self.number, Method::Cancel, Vec::new());
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // Poisoning does not matter: every change under the lock is one insertion or one removal.
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batches {
    /// Opens the stream and spawns the task that reads its answers.
    pub(crate) async fn open(channel: Channel, runtime: &Handle) -> Result<Batches, Status> {
        // The channel can be unbounded: the callers hold permits of the connection, whose number limits the calls in flight.
        let (requests, calls) = mpsc::unbounded_channel();
        let calls = UnboundedReceiverStream::new(calls).ready_chunks(TOGETHER);
        let mut client = ProviderCallsClient::new(channel)
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        let answers = client.exchange(calls.map(|requests| Requests { requests })).await?;
        let waiting = Arc::<Mutex<Waiting>>::default();
        // The task is spawned on the runtime of the connection, because the caller's may belong to a single
        // expression, and end before the provider.
        runtime.spawn(hand_out(answers.into_inner(), Answering(waiting.clone())));
        Ok(Batches { requests, waiting })
    }

    /// Sends a call and waits for its answer; `message` is the encoded request.
    pub(crate) async fn call<A: Message + Default>(&self, method: Method, message: Vec<u8>) -> Result<A, Status> {
        let (sender, receiver) = oneshot::channel();
        let number = {
            // The status is checked under the lock that `Answering::end` takes: if the stream has ended, the call fails here; otherwise it
            // is registered, and fails with all others when the stream ends.
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
        // Sending fails only after the end of the stream, which `Answering` reports to every caller.
        drop(self.requests.send(request));
    }
}

fn ended() -> Status {
    Status::unavailable("the provider ended the stream of calls")
}

/// Callers that wait for answers of a stream. Their calls fail when this value is dropped.
struct Answering(Arc<Mutex<Waiting>>);

impl Answering {
    fn end(&self, status: &Status) {
        let mut waiting = lock(&self.0);
        // The first status is kept, because the drop comes later and has a less specific one.
        waiting.ended.get_or_insert_with(|| status.clone());
        for (_, caller) in waiting.calls.drain() {
            drop(caller.send(Err(status.clone())));
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        // `drop` is called even if the task is aborted with its runtime, so that no caller waits for ever.
        self.end(&ended());
    }
}

/// Passes each answer to its caller, and the end of the stream to all that still wait.
async fn hand_out(mut answers: Streaming<Answers>, answering: Answering) {
    let status = loop {
        match answers.message().await {
            Ok(Some(batch)) => {
                let mut waiting = lock(&answering.0);
                for answer in batch.answers {
                    if let Some(caller) = waiting.calls.remove(&answer.number) {
                        // Fails if the caller was just dropped.
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
