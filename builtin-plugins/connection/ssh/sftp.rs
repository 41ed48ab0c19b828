//! The part of SFTP version 3 that copies files, with many requests in flight.
//!
//! A server answers requests for one file in their order, so a file is written and closed without waiting in between. Only the handle of
//! each file is awaited, for many files at once. A block of a file is read only when its request can be sent, so memory use does not depend
//! on the size of the file.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};

use crate::files::{BLOCK, Content, Entry, EntryKind, Progress, Reading, name_of, split, tree};
use crate::{Error, Result};

/// Maximum number of requests in flight.
const REQUESTS: usize = 64;

/// Maximum number of open files.
const FILES: usize = 32;

/// Default number of bytes in a write request. With its header, this is the usual maximum of an SSH packet.
const CHUNK: usize = 32 * 1024 - 128;

/// Maximum number of bytes in a write request to a server that announces its limits.
const LARGE_CHUNK: usize = BLOCK / 2;

/// Extension by which OpenSSH announces its limits (section 4.8 of OpenSSH's file PROTOCOL).
const LIMITS: &[u8] = b"limits@openssh.com";

/// Length limit of a response in bytes. No response to the requests of this module is longer.
const LONGEST: usize = 256 * 1024;

const INIT: u8 = 1;
const VERSION: u8 = 2;
const OPEN: u8 = 3;
const CLOSE: u8 = 4;
const WRITE: u8 = 6;
const SETSTAT: u8 = 9;
const MKDIR: u8 = 14;
const STAT: u8 = 17;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const ATTRS: u8 = 105;
const EXTENDED: u8 = 200;
const EXTENDED_REPLY: u8 = 201;

/// Flags WRITE, CREAT and TRUNC.
const OPEN_FLAGS: u32 = 0x02 | 0x08 | 0x10;
const HAS_PERMISSIONS: u32 = 4;

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

pub struct Sftp {
    reader: ChannelReadHalf,
    writer: ChannelWriteHalf<Msg>,
    received: Vec<u8>,
    next: u32,
    closed: bool,
    /// Bytes per write request.
    chunk: usize,
    progress: Progress,
}

/// A response of the server.
enum Answer {
    Ok,
    Failed(u32, String),
    Handle(Vec<u8>),
    /// Mode of a file, including its type; `None` if the server does not send it.
    Attributes(Option<u32>),
    /// Reply to an extended request.
    Extended(Vec<u8>),
}

/// A file to write.
struct Job {
    path: String,
    content: Content,
}

/// The operation that a request in flight belongs to.
enum Asked {
    Open(Job),
    Write(usize),
    Close(usize),
}

/// A file that is being written.
struct Active {
    path: String,
    handle: Vec<u8>,
    reading: Option<Reading>,
    block: Vec<u8>,
    /// Number of bytes of the block that have been sent.
    sent: usize,
    offset: u64,
    /// True once the close request has been sent.
    closing: bool,
}

impl Sftp {
    /// Starts the subsystem; `None` if the server does not have it, or does not answer with its version.
    pub async fn open(mut channel: Channel<Msg>, progress: Progress) -> Result<Option<Sftp>> {
        channel.request_subsystem(true, "sftp").await?;
        loop {
            match channel.wait().await {
                Some(ChannelMsg::Success) => break,
                Some(ChannelMsg::Failure | ChannelMsg::Close) => return Ok(None),
                None => return Err(russh::Error::HUP.into()),
                Some(_) => {}
            }
        }
        let (reader, writer) = channel.split();
        let mut sftp = Sftp {
            reader,
            writer,
            received: Vec::new(),
            next: 0,
            closed: false,
            chunk: CHUNK,
            progress,
        };
        sftp.send(INIT, &[&3u32.to_be_bytes()]).await?;
        // A server without the SFTP program sends no valid version, and neither does one whose shell profile prints something.
        match sftp.receive().await {
            Ok((VERSION, offers)) => {
                if offers.windows(LIMITS.len()).any(|part| part == LIMITS) {
                    sftp.ask_limits().await?;
                }
                Ok(Some(sftp))
            }
            Ok(_) | Err(_) => {
                drop(sftp.writer.close().await);
                Ok(None)
            }
        }
    }

    /// Requests the server's limits, and sets the size of write requests.
    async fn ask_limits(&mut self) -> Result<()> {
        let id = self.request(EXTENDED, &bytes(LIMITS)).await?;
        if let Answer::Extended(limits) = self.answer_to(id).await? {
            self.chunk = chunk_within(&limits);
        }
        Ok(())
    }

    /// Returns true if the session is no longer usable.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes a file.
    pub async fn upload(&mut self, path: &str, content: Content) -> Result<()> {
        // As with scp, a path that ends in a slash names a directory, and the file in it has the name of that directory.
        let path = if path.ends_with('/') {
            let (directory, name) = split(path);
            join(&directory, &name)
        } else {
            path.to_owned()
        };
        self.write_files(VecDeque::from([Job { path, content }])).await
    }

    /// Copies a directory into another one, or only its contents.
    pub async fn upload_directory(&mut self, destination: &str, source: &Path, contents_only: bool) -> Result<()> {
        let entries = tree(source).await?;
        let is_there = self.is_directory(destination).await?;
        let target = match (contents_only, is_there) {
            (true, true) => destination.to_owned(),
            (true, false) => {
                return Err(Error::fatal(format!(
                    "{destination} is no directory on the other machine. It must be there before something is copied into it."
                )));
            }
            (false, true) => join(destination, &name_of(source)?),
            // As with `cp -r`: if the destination does not exist, it becomes the copy of the directory.
            (false, false) => destination.to_owned(),
        };
        let mut levels: Vec<Vec<String>> = vec![if contents_only {
            Vec::new()
        } else {
            vec![target.clone()]
        }];
        let mut jobs = VecDeque::new();
        collect(&target, entries, 1, &mut levels, &mut jobs);
        for level in levels {
            self.make_directories(level).await?;
        }
        self.write_files(jobs).await
    }

    /// Sets the permissions of a file.
    pub async fn set_mode(&mut self, path: &str, mode: u32) -> Result<()> {
        let mut body = string(path);
        body.extend(permissions(mode));
        let id = self.request(SETSTAT, &body).await?;
        match self.answer_to(id).await? {
            Answer::Failed(code, text) => Err(failed(path, code, &text)),
            _ => Ok(()),
        }
    }

    async fn is_directory(&mut self, path: &str) -> Result<bool> {
        let id = self.request(STAT, &string(path)).await?;
        Ok(match self.answer_to(id).await? {
            Answer::Attributes(mode) => mode.is_none_or(|mode| mode & 0o170_000 == 0o040_000),
            _ => false,
        })
    }

    /// Creates directories that have the same depth. Existing ones keep their permissions.
    async fn make_directories(&mut self, paths: Vec<String>) -> Result<()> {
        let mut existing = Vec::new();
        for part in paths.chunks(REQUESTS) {
            let mut asked = HashMap::new();
            for path in part {
                let mut body = string(path);
                body.extend(permissions(DIRECTORY_MODE));
                asked.insert(self.request(MKDIR, &body).await?, path);
            }
            while !asked.is_empty() {
                let (id, answer) = self.answer().await?;
                let Some(path) = asked.remove(&id) else { continue };
                if let Answer::Failed(code, text) = answer {
                    existing.push((path.clone(), code, text));
                }
            }
        }
        // The protocol has no error code for "already exists", so each directory that could not be created is checked.
        for (path, code, text) in existing {
            if !self.is_directory(&path).await? {
                return Err(failed(&path, code, &text));
            }
        }
        Ok(())
    }

    /// Writes files, several at the same time. Ends at the first failure.
    async fn write_files(&mut self, mut jobs: VecDeque<Job>) -> Result<()> {
        let mut asked: HashMap<u32, Asked> = HashMap::new();
        let mut active: HashMap<usize, Active> = HashMap::new();
        let mut count = 0;
        let mut opening = 0;
        loop {
            while asked.len() < REQUESTS {
                // Open files are continued before others are opened, the oldest first, so that files are finished one after the other.
                let ready = active.iter().filter(|(_, file)| !file.closing).map(|(n, _)| *n).min();
                if let Some(number) = ready
                    && let Some(file) = active.get_mut(&number)
                {
                    let (id, what) = self.advance(number, file).await?;
                    asked.insert(id, what);
                } else if active.len() + opening < FILES
                    && let Some(job) = jobs.pop_front()
                {
                    let mut body = string(&job.path);
                    body.extend(OPEN_FLAGS.to_be_bytes());
                    body.extend(permissions(FILE_MODE));
                    let id = self.request(OPEN, &body).await?;
                    asked.insert(id, Asked::Open(job));
                    opening += 1;
                } else {
                    break;
                }
            }
            if asked.is_empty() {
                return Ok(());
            }
            let (id, answer) = self.answer().await?;
            match (asked.remove(&id), answer) {
                (Some(Asked::Open(job)), Answer::Handle(handle)) => {
                    opening -= 1;
                    let (reading, _) = job.content.open(&self.progress).await?;
                    active.insert(
                        count,
                        Active {
                            path: job.path,
                            handle,
                            reading: Some(reading),
                            block: Vec::new(),
                            sent: 0,
                            offset: 0,
                            closing: false,
                        },
                    );
                    count += 1;
                }
                (Some(Asked::Open(job)), Answer::Failed(code, text)) => {
                    // The remaining answers are received first: otherwise they would be taken for answers to the next request.
                    let is_directory = self.drain(asked.len()).await.is_ok() && self.is_directory(&job.path).await?;
                    return Err(if is_directory {
                        Error::fatal(format!("{}: Is a directory", job.path))
                    } else {
                        failed(&job.path, code, &text)
                    });
                }
                (Some(Asked::Write(number) | Asked::Close(number)), Answer::Failed(code, text)) => {
                    let path = active.get(&number).map_or("", |file| file.path.as_str());
                    let error = failed(path, code, &text);
                    self.drain(asked.len()).await?;
                    return Err(error);
                }
                (Some(Asked::Close(number)), _) => {
                    active.remove(&number);
                }
                _ => {}
            }
        }
    }

    /// Sends the next request for a file, which writes the next part of the file or closes it.
    async fn advance(&mut self, number: usize, file: &mut Active) -> Result<(u32, Asked)> {
        if file.sent == file.block.len()
            && let Some(reading) = file.reading.take()
        {
            let (reading, block) = reading.block(BLOCK).await?;
            file.sent = 0;
            file.reading = (!block.is_empty()).then_some(reading);
            file.block = block;
        }
        if file.sent == file.block.len() {
            file.closing = true;
            let id = self.request(CLOSE, &bytes(&file.handle)).await?;
            return Ok((id, Asked::Close(number)));
        }
        let end = file.block.len().min(file.sent + self.chunk);
        let data = &file.block[file.sent..end];
        let mut body = Vec::with_capacity(file.handle.len() + data.len() + 16);
        body.extend(bytes(&file.handle));
        body.extend(file.offset.to_be_bytes());
        body.extend(length(data.len()));
        body.extend(data);
        let id = self.request(WRITE, &body).await?;
        file.offset += data.len() as u64;
        file.sent = end;
        Ok((id, Asked::Write(number)))
    }

    /// Receives and drops this number of responses.
    async fn drain(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.answer().await?;
        }
        Ok(())
    }

    /// Sends a request. Returns its ID, which is also in the response.
    async fn request(&mut self, kind: u8, body: &[u8]) -> Result<u32> {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.send(kind, &[&id.to_be_bytes(), body]).await?;
        Ok(id)
    }

    async fn send(&mut self, kind: u8, body: &[&[u8]]) -> Result<()> {
        let length_of_body: usize = body.iter().map(|part| part.len()).sum();
        let mut packet = Vec::with_capacity(length_of_body + 5);
        packet.extend(length(length_of_body + 1));
        packet.push(kind);
        for part in body {
            packet.extend_from_slice(part);
        }
        let sending = self.writer.data_bytes(packet);
        tokio::pin!(sending);
        // Responses are received during the wait: a server that cannot send may stop reading, and both sides would wait forever.
        let sent = loop {
            tokio::select! {
                biased;
                sent = &mut sending => break sent,
                message = self.reader.wait() => if !take(&mut self.received, message) {
                    break Err(russh::Error::HUP);
                },
            }
        };
        self.closed |= sent.is_err();
        Ok(sent?)
    }

    async fn answer_to(&mut self, wanted: u32) -> Result<Answer> {
        loop {
            let (id, answer) = self.answer().await?;
            if id == wanted {
                return Ok(answer);
            }
        }
    }

    async fn answer(&mut self) -> Result<(u32, Answer)> {
        let (kind, packet) = self.receive().await?;
        let parsed = parse(kind, &packet);
        self.closed |= parsed.is_none();
        parsed.ok_or_else(|| Error::new("the server's SFTP sent something that cannot be read"))
    }

    /// Receives the next message of the server.
    async fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        loop {
            if let Some((head, rest)) = self.received.split_first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(*head)).unwrap_or(usize::MAX);
                // The server chooses the length. Without a limit, it could make this process allocate any amount of memory.
                if length == 0 || length > LONGEST {
                    self.closed = true;
                    return Err(Error::new("the server's SFTP sent something that cannot be read"));
                }
                if let Some(packet) = rest.get(..length) {
                    let (kind, body) = (packet[0], packet[1..].to_vec());
                    self.received.drain(..length + 4);
                    return Ok((kind, body));
                }
            }
            let message = self.reader.wait().await;
            if !take(&mut self.received, message) {
                self.closed = true;
                return Err(russh::Error::HUP.into());
            }
        }
    }
}

/// Appends received data. Returns false at the end of the channel.
fn take(received: &mut Vec<u8>, message: Option<ChannelMsg>) -> bool {
    match message {
        Some(ChannelMsg::Data { data }) => received.extend_from_slice(&data),
        Some(ChannelMsg::Close | ChannelMsg::Eof) | None => return false,
        Some(_) => {}
    }
    true
}

/// Collects the files of a tree, and its directories by depth: a directory must exist before its content is written.
fn collect(target: &str, entries: Vec<Entry>, depth: usize, levels: &mut Vec<Vec<String>>, jobs: &mut VecDeque<Job>) {
    for entry in entries {
        let path = join(target, &entry.name);
        match entry.kind {
            EntryKind::File(file) => jobs.push_back(Job {
                path,
                content: Content::File(file),
            }),
            EntryKind::Directory(inner) => {
                if levels.len() <= depth {
                    levels.resize(depth + 1, Vec::new());
                }
                levels[depth].push(path.clone());
                collect(&path, inner, depth + 1, levels, jobs);
            }
        }
    }
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "." => name.to_owned(),
        _ => format!("{}/{name}", directory.trim_end_matches('/')),
    }
}

fn length(n: usize) -> [u8; 4] {
    // Cannot fail: packets are far shorter than 4 GiB.
    u32::try_from(n).unwrap_or(u32::MAX).to_be_bytes()
}

fn bytes(data: &[u8]) -> Vec<u8> {
    [&length(data.len())[..], data].concat()
}

fn string(text: &str) -> Vec<u8> {
    bytes(text.as_bytes())
}

/// Encodes attributes that consist of permissions only.
fn permissions(mode: u32) -> Vec<u8> {
    [HAS_PERMISSIONS.to_be_bytes(), mode.to_be_bytes()].concat()
}

/// Describes the failure of a request for a path.
fn failed(path: &str, code: u32, text: &str) -> Error {
    // The texts of servers differ, so the texts of POSIX for the error codes are shown instead.
    let reason = match code {
        2 => "No such file or directory",
        3 => "Permission denied",
        8 => "Operation unsupported",
        _ if text.is_empty() => "Failure",
        _ => text,
    };
    Error::fatal(format!("{path}: {reason}"))
}

/// Parses a response into its request ID and content; `None` if it is malformed.
fn parse(kind: u8, packet: &[u8]) -> Option<(u32, Answer)> {
    let mut rest = packet;
    let mut number = || {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        rest = tail;
        Some(u32::from_be_bytes(*head))
    };
    let id = number()?;
    let answer = match kind {
        STATUS => match number()? {
            0 => Answer::Ok,
            code => {
                let length = number().and_then(|n| usize::try_from(n).ok());
                let text = length.and_then(|n| rest.get(..n)).unwrap_or_default();
                Answer::Failed(code, String::from_utf8_lossy(text).into_owned())
            }
        },
        HANDLE => {
            let length = usize::try_from(number()?).ok()?;
            Answer::Handle(rest.get(..length)?.to_vec())
        }
        ATTRS => {
            let flags = number()?;
            // If they are present, the size and the owner precede the mode, with eight bytes each.
            let before = (if flags & 1 == 0 { 0 } else { 8 }) + (if flags & 2 == 0 { 0 } else { 8 });
            let mode = rest.get(before..before + 4).and_then(|b| b.try_into().ok());
            Answer::Attributes(mode.filter(|_| flags & HAS_PERMISSIONS != 0).map(u32::from_be_bytes))
        }
        EXTENDED_REPLY => Answer::Extended(rest.to_vec()),
        _ => return None,
    };
    Some((id, answer))
}

/// Returns the size of write requests for the reply to [`LIMITS`]. The reply has the maximum lengths of a packet, a read and a write, in
/// this order; zero means no limit.
fn chunk_within(limits: &[u8]) -> usize {
    let limit = |n: usize| {
        let bytes = limits.get(8 * n..8 * n + 8)?.try_into().ok()?;
        usize::try_from(u64::from_be_bytes(bytes))
            .ok()
            .filter(|limit| *limit > 0)
    };
    // Besides the data, the packet has only a handle of at most 256 bytes, and numbers.
    let packet = limit(0).map(|packet| packet.saturating_sub(512));
    match (packet, limit(2)) {
        (Some(packet), Some(write)) => packet.min(write).clamp(CHUNK, LARGE_CHUNK),
        _ => CHUNK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_writes_what_the_server_takes() {
        let limits = |all: [u64; 4]| all.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<_>>();
        assert_eq!(chunk_within(&limits([262_144, 261_120, 261_120, 1019])), LARGE_CHUNK);
        assert_eq!(chunk_within(&limits([262_144, 0, 65_536, 0])), 65_536);
        assert_eq!(chunk_within(&limits([40_000, 0, 65_536, 0])), 40_000 - 512);
        for nonsense in [limits([0, 0, 0, 0]), limits([u64::MAX, 0, 1, 0]), vec![1, 2, 3], vec![]] {
            assert_eq!(chunk_within(&nonsense), CHUNK);
        }
    }

    #[test]
    fn answers_are_read_and_nonsense_is_none() {
        let status = [
            &7u32.to_be_bytes()[..],
            &3u32.to_be_bytes(),
            &string("no"),
            &string("en"),
        ]
        .concat();
        assert!(matches!(parse(STATUS, &status), Some((7, Answer::Failed(3, text))) if text == "no"));
        let short = [7u32.to_be_bytes(), 3u32.to_be_bytes()].concat();
        assert!(matches!(parse(STATUS, &short), Some((7, Answer::Failed(3, _)))));
        let attributes = [
            &1u32.to_be_bytes()[..],
            &5u32.to_be_bytes(),
            &0u64.to_be_bytes(),
            &0o040_755u32.to_be_bytes(),
        ]
        .concat();
        assert!(matches!(
            parse(ATTRS, &attributes),
            Some((1, Answer::Attributes(Some(0o040_755))))
        ));
        for (kind, packet) in [
            (STATUS, vec![0, 0]),
            (HANDLE, vec![0, 0, 0, 1, 0, 0, 0, 9]),
            (200, vec![0; 8]),
        ] {
            assert!(parse(kind, &packet).is_none());
        }
    }
}
