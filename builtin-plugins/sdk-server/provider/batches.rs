//! Batched calls. `proto/calls.proto` documents the messages, and the reason for them.
//!
//! One task serves a stream. It starts each call when it arrives, and sends the answers of finished calls together. Calls of plugins that
//! never block run on that task; calls of other plugins run on threads of their own (see [`threads`](crate::threads)).

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use futures::{FutureExt as _, StreamExt as _};
use monoform_sdk::calls::StopOnDrop;
use prost::bytes::Bytes;
use proto::calls::provider_calls_server::ProviderCalls;
use proto::calls::request::Method as Called;
use proto::calls::{Answer, Answers, Failure, Request as Call, Requests};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::called::logged;
use super::methods::{Method, method};
use super::service::Service;
use crate::auxiliary::Shutdown;
use crate::limits::MESSAGE_LIMIT;

/// Maximum number of messages that wait to be sent. Each message holds all answers that were ready at the time.
const WAITING: usize = 4;
/// Size limit in bytes of a message with several answers. A longer answer gets a message of its own.
const LARGE: usize = 1 << 20;
/// Maximum overhead of an answer in its message, in bytes: field numbers and lengths.
const AROUND: usize = 64;

type Running = BoxFuture<'static, Answer>;

/// State of a stream: its calls in progress, and the answers that have not been sent yet.
struct Exchange {
    service: Service,
    running: FuturesUnordered<Running>,
    /// Guards of the calls in progress, by call number. Dropping a guard requests its call to stop.
    callers: HashMap<u64, StopOnDrop>,
    ready: Vec<Answer>,
    /// Completes when the plugin should end. A stream that stayed open would keep the server from ending.
    shutdown: BoxFuture<'static, ()>,
}

impl Exchange {
    /// Starts a call, and polls it once. A call that needs no waiting has then ended, which saves waking the task again.
    fn begin(&mut self, call: Call, cx: &mut Context<'_>) {
        let number = call.number;
        let called = call.method();
        if called == Called::Cancel {
            // A request to cancel: dropping the guard requests the call to stop. The answer of the call is still sent.
            self.callers.remove(&number);
            return;
        }
        let begun = Arc::new(self.service.provider.calls().begin());
        let caller = begun.stop_on_drop();
        let service = Service {
            provider: self.service.provider.clone(),
            begun: Some(begun),
        };
        let mut running: Running = Box::pin(async move {
            // The messages of these methods are equal in both protocols, so the table of protocol 6 also serves clients of protocol 5.
            let result = match called.name().and_then(|name| method(6, name)) {
                Some(Method::Unary(answer)) => {
                    let name = called.name().unwrap_or_default();
                    let request = call.message.clone();
                    logged(6, name, &request, answer(service, Request::new(call.message))).await
                }
                _ => Err(Status::unimplemented("this method is not called in batches")),
            };
            answer(number, result.map(Response::into_inner))
        });
        match running.poll_unpin(cx) {
            Poll::Ready(answer) => self.ready.push(answer),
            Poll::Pending => {
                self.callers.insert(number, caller);
                self.running.push(running);
            }
        }
    }

    /// Collects the answers of calls that have ended since the last poll.
    fn poll_ended(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(answer)) = self.running.poll_next_unpin(cx) {
            self.callers.remove(&answer.number);
            self.ready.push(answer);
        }
    }

    /// Serves the stream until it is closed and all its calls have ended.
    async fn run(mut self, mut requests: Streaming<Requests>, answers: mpsc::Sender<Result<Answers, Status>>) {
        let mut open = true;
        loop {
            poll_fn(|cx| {
                // The plugin should end: it accepts no further calls, but still sends the answers of calls in progress.
                if open && self.shutdown.poll_unpin(cx).is_ready() {
                    open = false;
                }
                while open {
                    match requests.poll_next_unpin(cx) {
                        Poll::Ready(Some(Ok(batch))) => {
                            batch.requests.into_iter().for_each(|call| self.begin(call, cx))
                        }
                        // The client has closed the stream and needs no answers, so the calls are requested to stop.
                        Poll::Ready(_) => {
                            open = false;
                            self.callers.clear();
                        }
                        Poll::Pending => break,
                    }
                }
                self.poll_ended(cx);
                match open && self.ready.is_empty() {
                    true => Poll::Pending,
                    false if self.ready.is_empty() && !self.running.is_empty() => Poll::Pending,
                    false => Poll::Ready(()),
                }
            })
            .await;
            if self.ready.is_empty() {
                return;
            }
            for batch in batches(std::mem::take(&mut self.ready)) {
                // Sending fails if the client has disconnected. The calls in progress continue, since they may be changing objects.
                drop(answers.send(Ok(batch)).await);
            }
        }
    }
}

/// Converts the result of a call to its answer. If the message is above the limit, only this call fails, instead of the whole stream.
fn answer(number: u64, result: Result<Bytes, Status>) -> Answer {
    let result = result.and_then(|message| match message.len() > MESSAGE_LIMIT - AROUND {
        // The wording of tonic for a message of a single call that is too large.
        true => Err(Status::out_of_range(format!(
            "Error, encoded message length too large: found {} bytes, the limit is: {MESSAGE_LIMIT} bytes",
            message.len()
        ))),
        false => Ok(message),
    });
    match result {
        Ok(message) => Answer {
            number,
            message,
            failure: None,
        },
        Err(status) => Answer {
            number,
            message: Bytes::new(),
            failure: Some(Failure {
                code: Code::into(status.code()),
                text: status.message().to_owned(),
            }),
        },
    }
}

/// Distributes answers to messages shorter than [`LARGE`]. A longer answer gets a message of its own.
fn batches(ready: Vec<Answer>) -> Vec<Answers> {
    let mut batches: Vec<Answers> = Vec::with_capacity(1);
    // Initialized as full, so that the first answer opens a message.
    let mut size = LARGE;
    for answer in ready {
        size += answer.message.len();
        if size >= LARGE {
            batches.push(Answers::default());
            size = answer.message.len();
        }
        if let Some(last) = batches.last_mut() {
            last.answers.push(answer);
        }
    }
    batches
}

/// Service for batched calls.
pub(crate) struct Batches {
    pub service: Service,
    pub shutdown: Shutdown,
}

#[tonic::async_trait]
impl ProviderCalls for Batches {
    type ExchangeStream = BoxStream<'static, Result<Answers, Status>>;

    async fn exchange(&self, request: Request<Streaming<Requests>>) -> Result<Response<Self::ExchangeStream>, Status> {
        let (answers, stream) = mpsc::channel(WAITING);
        let exchange = Exchange {
            service: self.service.clone(),
            running: FuturesUnordered::new(),
            callers: HashMap::new(),
            ready: Vec::new(),
            shutdown: {
                let shutdown = self.shutdown.clone();
                Box::pin(async move { shutdown.begun().await })
            },
        };
        tokio::spawn(exchange.run(request.into_inner(), answers));
        Ok(Response::new(ReceiverStream::new(stream).boxed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized(length: usize) -> Answer {
        answer(1, Ok(vec![0; length].into()))
    }

    #[test]
    fn large_answers_travel_apart() {
        let ready = vec![sized(1), sized(LARGE - 10), sized(5), sized(LARGE), sized(1)];
        let lengths: Vec<usize> = batches(ready).iter().map(|batch| batch.answers.len()).collect();
        assert_eq!(lengths, [3, 1, 1]);
        assert!(batches(Vec::new()).is_empty());
    }

    #[test]
    fn answer_above_the_limit_fails_alone() {
        let failure = sized(MESSAGE_LIMIT).failure.unwrap_or_default();
        assert_eq!(failure.code, i32::from(Code::OutOfRange));
    }
}
