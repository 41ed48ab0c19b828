//! Slots for connections, which are limited in all and for each client. The transfers on each connection are recorded, because a client
//! that reads slowly or not at all must not block others.

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
use tokio::time::{Instant, timeout};

/// Maximum number of open connections.
const ALL: usize = 256;
/// Maximum number of open connections of one client, and of its connections that wait for a slot.
const OF_ONE: usize = 64;
/// Maximum number of connections that wait for a slot.
const WAITING: usize = 512;
/// Time for which a connection waits for a slot.
const PATIENCE: Duration = Duration::from_secs(30);
/// Interval at which a waiting connection checks whether another one has become idle.
const LOOK: Duration = Duration::from_millis(100);

/// Conditions under which a connection may be closed to make room for another one.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Time without a transfer after which a connection is idle.
    idle: Duration,
    /// Age from which the transfer rate of a connection counts.
    age: Duration,
    /// Minimum rate in bytes per second.
    rate: u64,
}

const RULE: Rule = Rule {
    idle: Duration::from_secs(1),
    age: crate::limits::FIRST,
    rate: crate::limits::LOWEST_RATE,
};

#[derive(Debug)]
pub(crate) struct Guests {
    all: usize,
    of_one: usize,
    rule: Rule,
    places: Mutex<Places>,
    next: AtomicU64,
    /// Notified when a slot becomes free.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Places {
    open: HashMap<u64, Guest>,
    /// Number of waiting connections, by client.
    waiting: HashMap<IpAddr, usize>,
}

#[derive(Debug)]
struct Guest {
    client: IpAddr,
    activity: Arc<Activity>,
    end: Arc<Notify>,
}

/// Number of bytes that a client has sent and received, and the time of the last transfer. Bytes in the send buffer count as received: a
/// client that does not read fills the buffer once, and is idle from then on.
#[derive(Debug)]
pub(crate) struct Activity {
    since: Instant,
    moved: AtomicU64,
    /// Time of the last transfer, in milliseconds from `since`.
    last: AtomicU64,
}

impl Activity {
    fn new() -> Activity {
        Activity {
            since: Instant::now(),
            moved: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    pub fn add(&self, bytes: usize) {
        if bytes > 0 {
            self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
            let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.last.store(now, Ordering::Relaxed);
        }
    }

    fn idle(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(last)
    }

    /// Returns true if the connection may be closed to make room for another one.
    fn yields(&self, rule: Rule) -> bool {
        let age = self.since.elapsed();
        let is_slow = || self.moved.load(Ordering::Relaxed) / age.as_secs().max(1) < rule.rate;
        self.idle() >= rule.idle || age >= rule.age && is_slow()
    }
}

/// Slot of a connection. Dropping the `Seat` frees the slot.
#[derive(Debug)]
pub(crate) struct Seat {
    guests: Arc<Guests>,
    number: u64,
    pub activity: Arc<Activity>,
    /// Notified when the connection must close to make room for another one.
    pub end: Arc<Notify>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.guests.lock().open.remove(&self.number);
        self.guests.freed.notify_waiters();
    }
}

/// Connection that waits for a slot.
struct Waiting<'g> {
    guests: &'g Guests,
    client: IpAddr,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut places = self.guests.lock();
        if let Some(count) = places.waiting.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                places.waiting.remove(&self.client);
            }
        }
    }
}

impl Guests {
    pub fn new() -> Arc<Guests> {
        Guests::with(ALL, OF_ONE, RULE)
    }

    fn with(all: usize, of_one: usize, rule: Rule) -> Arc<Guests> {
        Arc::new(Guests {
            all,
            of_one,
            rule,
            places: Mutex::default(),
            next: AtomicU64::new(0),
            freed: Notify::new(),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. Returns `None` if too many connections are waiting already, or if it takes too long.
    pub async fn seat(self: &Arc<Guests>, client: IpAddr) -> Option<Seat> {
        let client = network(client);
        if let Some(seat) = self.free_seat(client) {
            return Some(seat);
        }
        let _waiting = self.wait(client)?;
        let seated = async {
            loop {
                // The listener is created before the slots are checked, so that a slot that becomes free in
                // between is not missed.
                let freed = self.freed.notified();
                if let Some(seat) = self.free_seat(client) {
                    return seat;
                }
                // No notification is sent when a connection becomes idle, so this is checked at intervals.
                drop(timeout(LOOK, freed).await);
            }
        };
        timeout(PATIENCE, seated).await.ok()
    }

    fn wait(&self, client: IpAddr) -> Option<Waiting<'_>> {
        let mut places = self.lock();
        let all: usize = places.waiting.values().sum();
        let own = places.waiting.get(&client).copied().unwrap_or_default();
        if own >= self.of_one || all >= WAITING {
            return None;
        }
        // Refused clients get no entry, because it would never be removed.
        places.waiting.insert(client, own + 1);
        Some(Waiting { guests: self, client })
    }

    /// Takes a slot, if one is free. Otherwise closes a connection that may be closed: one of the same client if that client has all its
    /// slots, or else any one. Among several, the one that has been idle longest is closed. Returns `None` if no connection may be closed.
    fn free_seat(self: &Arc<Guests>, client: IpAddr) -> Option<Seat> {
        let mut places = self.lock();
        let open = &mut places.open;
        let own = open.values().filter(|guest| guest.client == client).count();
        if own >= self.of_one || open.len() >= self.all {
            let considered = |guest: &Guest| own < self.of_one || guest.client == client;
            let longest = open
                .iter()
                .filter(|(_, guest)| considered(guest) && guest.activity.yields(self.rule))
                // Among connections that have been idle equally long, the oldest one is closed, which has the lowest number.
                .max_by_key(|(number, guest)| (guest.activity.idle(), std::cmp::Reverse(**number)))
                .map(|(number, _)| *number)?;
            if let Some(guest) = open.remove(&longest) {
                guest.end.notify_one();
            }
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (activity, end) = (Arc::new(Activity::new()), Arc::<Notify>::default());
        open.insert(
            number,
            Guest {
                client,
                activity: activity.clone(),
                end: end.clone(),
            },
        );
        Some(Seat {
            guests: self.clone(),
            number,
            activity,
            end,
        })
    }

    /// Returns true if no connection is open.
    pub fn is_empty(&self) -> bool {
        self.lock().open.is_empty()
    }
}

/// Returns the address that identifies a client. For IPv6 it is the network (/64), because a client can use any address in it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(prefix.into())
        }
        address => address,
    }
}

/// Stream that counts the transferred bytes in an [`Activity`].
pub(crate) struct Counted<S> {
    pub inner: S,
    pub activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.activity.add(buffer.filled().len() - before);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(count)) = &polled {
            self.activity.add(*count);
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

    /// Builds a rule by which connections are idle after this time: `Duration::ZERO` makes every connection idle.
    fn idle_after(idle: Duration) -> Rule {
        Rule {
            idle,
            age: Duration::MAX,
            rate: 0,
        }
    }

    /// Makes a connection look older, without waiting.
    fn with_age(seat: &mut Seat, seconds: u64, moved: u64, last: u64) {
        let since = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
        let activity = Arc::new(Activity {
            since,
            moved: AtomicU64::new(moved),
            last: AtomicU64::new(last * 1000),
        });
        seat.guests.lock().open.get_mut(&seat.number).unwrap().activity = activity.clone();
        seat.activity = activity;
    }

    #[tokio::test]
    async fn the_connection_that_was_idle_longest_makes_room_however_much_it_has_taken() {
        let guests = Guests::with(3, 3, idle_after(Duration::from_secs(1)));
        let mut full = guests.seat(client(1)).await.unwrap();
        let mut slow = guests.seat(client(1)).await.unwrap();
        let mut fast = guests.seat(client(2)).await.unwrap();
        // The first client has filled its buffers at once and then read nothing. The second one reads slowly but steadily.
        with_age(&mut full, 60, 8 << 20, 1);
        with_age(&mut slow, 60, 60 << 10, 57);
        with_age(&mut fast, 60, 600 << 20, 60);
        let _new = guests.seat(client(3)).await.unwrap();
        full.end.notified().await;
        drop(full);
        assert!(guests.lock().open.contains_key(&slow.number));
        let _newer = guests.seat(client(4)).await.unwrap();
        slow.end.notified().await;
        assert!(guests.lock().open.contains_key(&fast.number));
    }

    #[tokio::test]
    async fn a_client_with_all_its_places_gives_one_of_its_own() {
        let guests = Guests::with(4, 1, idle_after(Duration::ZERO));
        let other = guests.seat(client(1)).await.unwrap();
        let own = guests.seat(client(2)).await.unwrap();
        let _next = guests.seat(client(2)).await.unwrap();
        own.end.notified().await;
        assert!(guests.lock().open.contains_key(&other.number));
    }

    #[tokio::test]
    async fn a_slow_connection_makes_room_although_it_is_never_idle() {
        let rule = Rule {
            idle: Duration::MAX,
            age: Duration::from_secs(20),
            rate: 16 << 10,
        };
        let guests = Guests::with(1, 1, rule);
        let mut dripping = guests.seat(client(1)).await.unwrap();
        with_age(&mut dripping, 30, 30, 30);
        let _new = guests.seat(client(2)).await.unwrap();
        dripping.end.notified().await;
    }

    #[tokio::test]
    async fn a_new_connection_waits_while_bytes_move_over_all_others() {
        let guests = Guests::with(1, 1, idle_after(Duration::MAX));
        let first = guests.seat(client(1)).await.unwrap();
        let (second, ()) = tokio::join!(guests.seat(client(2)), async {
            while guests.lock().waiting.is_empty() {
                tokio::task::yield_now().await;
            }
            drop(first);
        });
        assert!(second.is_some());
        assert!(guests.lock().waiting.is_empty());
        // One connection of each client may wait, and the next one is refused at once.
        let waiting = guests.wait(network(client(3))).unwrap();
        assert!(guests.seat(client(3)).await.is_none());
        drop(waiting);
        drop(second);
        assert!(guests.is_empty());
    }

    #[tokio::test]
    async fn a_refused_client_leaves_nothing_behind() {
        let guests = Guests::with(1, WAITING, idle_after(Duration::MAX));
        let _seat = guests.seat(client(1)).await.unwrap();
        let waiting: Vec<Waiting<'_>> = (0..WAITING).map(|_| guests.wait(client(2)).unwrap()).collect();
        for last in 3..10 {
            assert!(guests.seat(client(last)).await.is_none());
        }
        assert_eq!(guests.lock().waiting.len(), 1);
        drop(waiting);
        assert!(guests.lock().waiting.is_empty());
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }
}
