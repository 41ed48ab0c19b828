//! The open connections: how many each client has, and how fast each one is. A client that reads slowly, or not at all, must not keep
//! others out.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many connections there are at the same time.
const ALL: usize = 256;
/// How many of them one client may have.
const OF_ONE: usize = 64;
/// How long a connection is left in peace, whatever its rate.
const GRACE: Duration = Duration::from_secs(5);

/// The open connections.
#[derive(Debug)]
pub(super) struct Guests {
    all: usize,
    of_one: usize,
    grace: Duration,
    open: Mutex<HashMap<u64, Guest>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Guest {
    client: IpAddr,
    since: Instant,
    /// How many bytes it has sent and taken.
    moved: Arc<AtomicU64>,
    end: Arc<Notify>,
}

/// A place among the connections, which is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    guests: Arc<Guests>,
    number: u64,
    pub moved: Arc<AtomicU64>,
    /// Is notified when the connection has to make room for another one.
    pub end: Arc<Notify>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.guests.lock().remove(&self.number);
    }
}

impl Guest {
    /// Bytes a second.
    fn rate(&self) -> u64 {
        let seconds = self.since.elapsed().as_secs().max(1);
        self.moved.load(Ordering::Relaxed) / seconds
    }
}

impl Guests {
    pub fn new() -> Arc<Guests> {
        Guests::with(ALL, OF_ONE, GRACE)
    }

    fn with(all: usize, of_one: usize, grace: Duration) -> Arc<Guests> {
        Arc::new(Guests {
            all,
            of_one,
            grace,
            open: Mutex::default(),
            next: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Guest>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of a client. Where there is none, the slowest of the client's connections has to go, or the slowest of
    /// all if others have taken the places; none if they all are new.
    pub fn seat(self: &Arc<Guests>, client: IpAddr) -> Option<Seat> {
        let client = network(client);
        let mut open = self.lock();
        let own = open.values().filter(|guest| guest.client == client).count();
        if own >= self.of_one || open.len() >= self.all {
            let considered = |guest: &Guest| own < self.of_one || guest.client == client;
            let old = |guest: &Guest| guest.since.elapsed() >= self.grace;
            let slowest = open
                .iter()
                .filter(|(_, guest)| considered(guest) && old(guest))
                .min_by_key(|(number, guest)| (guest.rate(), **number))
                .map(|(number, _)| *number)?;
            if let Some(guest) = open.remove(&slowest) {
                guest.end.notify_one();
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (moved, end) = (Arc::<AtomicU64>::default(), Arc::<Notify>::default());
        open.insert(
            number,
            Guest {
                client,
                since: Instant::now(),
                moved: moved.clone(),
                end: end.clone(),
            },
        );
        Some(Seat {
            guests: self.clone(),
            number,
            moved,
            end,
        })
    }

    /// Returns true if no connection is open.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

/// The address that stands for a client: of IPv6 the network, since a client has many addresses in it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(prefix.into())
        }
        address => address,
    }
}

/// A connection whose bytes are counted.
pub(super) struct Counted<S> {
    pub inner: S,
    pub moved: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let read = buffer.filled().len() - before;
        self.moved.fetch_add(read as u64, Ordering::Relaxed);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &polled {
            self.moved.fetch_add(*count as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[tokio::test]
    async fn the_slowest_connection_makes_room() {
        let guests = Guests::with(4, 2, Duration::ZERO);
        let slow = guests.seat(client(1)).unwrap();
        let fast = guests.seat(client(1)).unwrap();
        fast.moved.fetch_add(1 << 20, Ordering::Relaxed);
        // The client has its two: its slowest goes, not that of another client.
        let other = guests.seat(client(2)).unwrap();
        let _third = guests.seat(client(1)).unwrap();
        slow.end.notified().await;
        drop(slow);
        // All places are taken: the slowest of all goes.
        let _fourth = guests.seat(client(3)).unwrap();
        other.moved.fetch_add(1 << 10, Ordering::Relaxed);
        let _fifth = guests.seat(client(4)).unwrap();
        assert_eq!(guests.lock().len(), 4);
        assert!(
            guests.lock().values().any(|guest| guest.client == client(2)),
            "it is faster than two others"
        );
        drop((fast, other, _third, _fourth, _fifth));
        assert!(guests.is_empty());
    }

    #[tokio::test]
    async fn new_connections_are_left_in_peace() {
        let guests = Guests::with(2, 1, Duration::from_secs(3600));
        let _one = guests.seat(client(1)).unwrap();
        assert!(guests.seat(client(1)).is_none());
        let _two = guests.seat(client(2)).unwrap();
        assert!(guests.seat(client(3)).is_none());
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
