//! A proxy that forwards every connection to a server, and breaks connections that write a state. It recognizes these by the size of the
//! request.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Size above which a request contains a state, in bytes.
pub const LARGE: usize = 100_000;

/// Fault of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault: connections are forwarded.
    None,
    /// No connection is forwarded any more, as if the server had disappeared.
    Gone,
    /// A connection ends while a state is sent.
    WhileSent,
    /// A connection ends after a state was sent, without the answer.
    BeforeAnswer,
    /// A request with a state is answered with this status and does not reach the server. For connections without TLS.
    Refused(u16),
}

const FAULTS: [Fault; 6] = [
    Fault::None,
    Fault::Gone,
    Fault::WhileSent,
    Fault::BeforeAnswer,
    Fault::Refused(403),
    Fault::Refused(500),
];

#[derive(Clone)]
pub struct Cut {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    to: u16,
    fault: AtomicU8,
    /// Number of connections that were broken.
    broken: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl State {
    fn fault(&self) -> Fault {
        FAULTS[usize::from(self.fault.load(Ordering::SeqCst))]
    }

    fn count(&self) {
        self.broken.fetch_add(1, Ordering::SeqCst);
    }
}

impl Cut {
    /// Starts a proxy to this port.
    pub fn start(to: u16) -> Cut {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it").port();
        let state = Arc::new(State {
            to,
            fault: AtomicU8::new(0),
            broken: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || carry(&state, client));
            }
        });
        Cut { port, state }
    }

    /// Sets the fault, for open connections, too.
    pub fn set(&self, fault: Fault) {
        let number = FAULTS.iter().position(|known| *known == fault).expect("a known fault");
        self.state
            .fault
            .store(u8::try_from(number).expect("a few"), Ordering::SeqCst);
        self.state.broken.store(0, Ordering::SeqCst);
        let open = std::mem::take(&mut *self.state.open.lock().expect("connections"));
        if fault == Fault::Gone {
            for connection in open {
                let _ = connection.shutdown(Shutdown::Both);
            }
            self.state.count();
        }
    }

    /// Returns the number of connections that were broken since the fault was set.
    pub fn broken(&self) -> usize {
        self.state.broken.load(Ordering::SeqCst)
    }
}

fn carry(state: &Arc<State>, mut client: TcpStream) -> Option<()> {
    if state.fault() == Fault::Gone {
        state.count();
        return None;
    }
    let mut server = TcpStream::connect(("127.0.0.1", state.to)).ok()?;
    state
        .open
        .lock()
        .expect("connections")
        .extend([client.try_clone().ok()?, server.try_clone().ok()?]);
    let sent = Arc::new(AtomicUsize::new(0));
    let mut back = (server.try_clone().ok()?, client.try_clone().ok()?);
    let (shared, counted) = (state.clone(), sent.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 14];
        while let Ok(length @ 1..) = back.0.read(&mut buffer) {
            if shared.fault() == Fault::BeforeAnswer && counted.load(Ordering::SeqCst) > LARGE {
                shared.count();
                let _ = back.1.shutdown(Shutdown::Both);
                break;
            }
            if back.1.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = back.1.shutdown(Shutdown::Both);
    });
    let mut buffer = vec![0; 1 << 14];
    let mut head = Vec::new();
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let all = sent.fetch_add(length, Ordering::SeqCst) + length;
        match state.fault() {
            Fault::WhileSent if all > LARGE / 2 => {
                state.count();
                let _ = server.shutdown(Shutdown::Both);
                break;
            }
            Fault::Refused(status) => {
                head.extend_from_slice(&buffer[..length]);
                if let Some(rest) = rest_of_large(&head) {
                    state.count();
                    refuse(&mut client, rest, status)?;
                    break;
                }
                if !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    // More of the request's head is needed to recognize it.
                    continue;
                }
                let part = std::mem::take(&mut head);
                server.write_all(&part).ok()?;
                continue;
            }
            _ => {}
        }
        server.write_all(&buffer[..length]).ok()?;
    }
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
    Some(())
}

/// Returns the number of bytes of a request with a state that have not arrived yet; `None` for another request, or if its head is
/// incomplete.
fn rest_of_large(request: &[u8]) -> Option<usize> {
    let end = request.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.split("content-length:").nth(1)?.lines().next()?.trim();
    let length: usize = length.parse().ok()?;
    (length > LARGE).then(|| (end + length).saturating_sub(request.len()))
}

fn refuse(client: &mut TcpStream, rest: usize, status: u16) -> Option<()> {
    let mut body = client.take(u64::try_from(rest).ok()?);
    std::io::copy(&mut body, &mut std::io::sink()).ok()?;
    let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    client.write_all(answer.as_bytes()).ok()
}
