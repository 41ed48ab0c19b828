//! Tests of connections that are lost between two operations, or stop responding.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use monoform_sdk::{Output, Stop};
use russh::keys::{Algorithm, PrivateKey};
use russh::server::{self, Auth, ChannelOpenHandle, Msg, Session};
use russh::{Channel, ChannelId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Hop, Settings, Ssh};

/// Server that accepts every login. Every command succeeds at once, except for `wait`, which never ends.
struct Server;

impl server::Handler for Server {
    type Error = russh::Error;

    async fn auth_password(&mut self, _: &str, _: &str) -> Result<Auth, Self::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)?;
        if data.trim_ascii() != b"wait" {
            session.exit_status_request(channel, 0)?;
            session.eof(channel)?;
            session.close(channel)?;
        }
        Ok(())
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(russh::Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)?;
        Ok(())
    }
}

/// State of the network between client and server.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Open,
    /// Nothing is transferred in either direction, and neither side is notified.
    Silent,
    /// Connections up to this number are closed; later ones are forwarded.
    Cut(usize),
}

/// Server behind a simulated network whose state can be changed. It counts the connections.
struct Lab {
    settings: Settings,
    way: watch::Sender<Way>,
    connections: Arc<AtomicUsize>,
}

impl Lab {
    async fn start() -> Lab {
        let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).expect("a key");
        let config = Arc::new(server::Config {
            keys: vec![key],
            ..server::Config::default()
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (way, watched) = watch::channel(Way::Open);
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
                let (ours, theirs) = tokio::io::duplex(64 * 1024);
                tokio::spawn(pass(socket, ours, number, watched.clone()));
                let config = Arc::clone(&config);
                tokio::spawn(async move {
                    if let Ok(session) = server::run_stream(config, theirs, Server).await {
                        drop(session.await);
                    }
                });
            }
        });
        let target = Hop {
            host: "127.0.0.1".to_owned(),
            port,
            user: "somebody".to_owned(),
            password: Some("secret".to_owned()),
            key: None,
            host_key: None,
        };
        let settings = Settings {
            target,
            bastion: None,
            proxy: None,
            agent: None,
            windows: false,
        };
        Lab {
            settings,
            way,
            connections,
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Copies bytes in both directions while the network is open.
async fn pass(mut socket: TcpStream, server: tokio::io::DuplexStream, number: usize, mut way: watch::Receiver<Way>) {
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut from_client, mut to_client) = socket.split();
    let (mut up, mut down) = ([0; 8192], [0; 8192]);
    loop {
        let now = *way.borrow_and_update();
        match now {
            Way::Cut(last) if number <= last => return,
            Way::Silent => {
                if way.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Way::Open | Way::Cut(_) => {}
        }
        let done = tokio::select! {
            changed = way.changed() => changed.is_err(),
            read = from_client.read(&mut up) => match read {
                Ok(length) if length > 0 => to_server.write_all(&up[..length]).await.is_err(),
                _ => true,
            },
            read = from_server.read(&mut down) => match read {
                Ok(length) if length > 0 => to_client.write_all(&down[..length]).await.is_err(),
                _ => true,
            },
        };
        if done {
            return;
        }
    }
}

async fn run(ssh: &mut Ssh, command: &str) -> crate::Result<()> {
    let (output, mut lines) = Output::channel();
    let reader = tokio::spawn(async move { while lines.recv().await.is_some() {} });
    let result = ssh.run(command, &output, &mut Stop::never()).await;
    drop(output);
    reader.await.expect("the reader ends");
    result
}

#[tokio::test]
async fn a_connection_lost_between_two_commands_is_made_again_once() {
    let lab = Lab::start().await;
    let mut ssh = Ssh::connect(&lab.settings, None).await.expect("connects");
    run(&mut ssh, "true").await.expect("runs");
    assert_eq!(lab.connections(), 1);

    lab.way.send_replace(Way::Cut(1));
    run(&mut ssh, "true").await.expect("runs on a new connection");
    assert_eq!(lab.connections(), 2);

    // If the server accepts no connection, the command fails after one attempt to connect.
    lab.way.send_replace(Way::Cut(usize::MAX));
    run(&mut ssh, "true").await.expect_err("the server is gone");
    assert_eq!(lab.connections(), 3);
}

#[tokio::test]
async fn a_server_that_says_nothing_for_two_minutes_counts_as_gone() {
    let lab = Lab::start().await;
    let mut ssh = Ssh::connect(&lab.settings, None).await.expect("connects");
    run(&mut ssh, "true").await.expect("runs");

    let silence = lab.way.clone();
    let running = run(&mut ssh, "wait");
    tokio::pin!(running);
    // The clock is not paused yet, and the time is long enough for the command to have started.
    tokio::select! {
        ended = &mut running => panic!("it waits: {ended:?}"),
        () = tokio::time::sleep(Duration::from_millis(300)) => {}
    }
    silence.send_replace(Way::Silent);
    tokio::time::pause();
    let begun = Instant::now();
    tokio::time::timeout(Duration::from_secs(600), running)
        .await
        .expect("it does not wait for ever")
        .expect_err("the command did not end");
    let waited = begun.elapsed();
    assert!(
        (Duration::from_secs(118)..Duration::from_secs(126)).contains(&waited),
        "{waited:?}"
    );
}
