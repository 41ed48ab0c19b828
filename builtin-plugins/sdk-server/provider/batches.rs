//! Batched calls: see `proto/calls.proto` for the messages and the reason.
//!
//! One task serves a stream: it starts each call when it arrives, and sends the answers of finished calls together. Calls of plugins
//! that never block run on that task, those of other plugins on threads of their own (see [`threads`](crate::threads)).

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

/// Limit of messages that wait to be sent. Each holds all answers that were ready.
const WAITING: usize = 4;
/// Size of a message in bytes: further answers go into another message.
const LARGE: usize = 1 << 20;
/// Limit of the bytes that an answer adds to its message: numbers and lengths.
const AROUND: usize = 64;

type Running = BoxFuture<'static, Answer>;

/// State of a stream: its calls in progress, and the answers that are not sent yet.
struct Exchange {
    service: Service,
    running: FuturesUnordered<Running>,
    /// Stop signals of the calls in progress, by number.
    callers: HashMap<u64, StopOnDrop>,
    ready: Vec<Answer>,
    /// Shutdown signal: an open stream would keep the server from ending.
    shutdown: BoxFuture<'static, ()>,
}

impl Exchange {
    /// Starts a call. A call that does not wait has ended when this returns, which saves a wake-up.
    fn begin(&mut self, call: Call, cx: &mut Context<'_>) {
        let number = call.number;
        let called = call.method();
        if called == Called::Cancel {
            // Dropping the guard requests the call to stop. Its answer is sent nevertheless.
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
            // The messages of these methods are equal in both protocols, so the
            // table of protocol 6 serves the clients of protocol 5, too.
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
                // A plugin that ends takes no further calls, but the answers of those in progress still go out.
                if open && self.shutdown.poll_unpin(cx).is_ready() {
                    open = false;
                }
                while open {
                    match requests.poll_next_unpin(cx) {
                        Poll::Ready(Some(Ok(batch))) => {
                            batch.requests.into_iter().for_each(|call| self.begin(call, cx))
                        }
                        // The connection is closed, so all callers are gone.
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
                // Sending fails if the client has disconnected. The calls still run to their ends, since they may be changing
                // objects.
                drop(answers.send(Ok(batch)).await);
            }
        }
    }
}

/// Converts the result of a call to its answer. A message above the limit fails this call instead of the whole stream.
fn answer(number: u64, result: Result<Bytes, Status>) -> Answer {
    let result = result.and_then(|message| match message.len() > MESSAGE_LIMIT - AROUND {
        // Worded as the library reports messages of a single call that are too large.
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

/// Distributes answers to messages below the size limit.
fn batches(ready: Vec<Answer>) -> Vec<Answers> {
    let mut batches: Vec<Answers> = Vec::with_capacity(1);
    // The size counts as full at first, so that the first answer opens a message.
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
