//! Copying with `scp -t`, for machines without SFTP. Each file is sent with a header, and both are acknowledged.

use std::path::Path;

use monoform_sdk::lines::Tail;
use russh::client::Msg;
use russh::{Channel, ChannelMsg};

use crate::files::{BLOCK, Content, Entry, EntryKind, Progress, name_of, split, tree};
use crate::words::{quoted, quoted_for_windows};
use crate::{Error, Result};

/// Number of bytes kept from the end of the program's error output, for messages.
const TAIL: usize = 2 * 1024;

/// A running `scp -t` on the other machine.
struct Sink {
    channel: Channel<Msg>,
    /// Acknowledgements that have been received but not parsed.
    answers: Vec<u8>,
    said: Tail,
    status: Option<u32>,
    /// True once the program has ended.
    ended: bool,
    progress: Progress,
}

/// Writes a file.
pub async fn upload(
    channel: Channel<Msg>,
    path: &str,
    content: Content,
    windows: bool,
    progress: Progress,
) -> Result<()> {
    let path = if windows {
        path.replace('\\', "/")
    } else {
        path.to_owned()
    };
    let (directory, name) = split(&path);
    let mut sink = Sink::start(channel, &["scp", "-vt", &directory], windows, progress).await?;
    sink.file(&name, content).await?;
    sink.finish().await
}

/// Copies a directory into another one, or only its contents.
pub async fn upload_directory(
    channel: Channel<Msg>,
    destination: &str,
    source: &Path,
    contents_only: bool,
    windows: bool,
    progress: Progress,
) -> Result<()> {
    let entries = tree(source).await?;
    let mut sink = Sink::start(channel, &["scp", "-rvt", destination], windows, progress).await?;
    if contents_only {
        sink.entries(entries).await?;
    } else {
        sink.directory(&name_of(source)?, entries).await?;
    }
    sink.finish().await
}

impl Sink {
    async fn start(channel: Channel<Msg>, words: &[&str], windows: bool, progress: Progress) -> Result<Sink> {
        let command: Vec<String> = words
            .iter()
            .map(|word| {
                if windows {
                    // The words are joined to one command line, which the remote shell parses, so each word is quoted for that shell.
                    quoted_for_windows(word)
                } else {
                    quoted(word)
                }
            })
            .collect();
        channel.exec(true, command.join(" ")).await?;
        Ok(Sink {
            channel,
            answers: Vec::new(),
            said: Tail::new(TAIL),
            status: None,
            ended: false,
            progress,
        })
    }

    async fn entries(&mut self, entries: Vec<Entry>) -> Result<()> {
        for entry in entries {
            match entry.kind {
                EntryKind::File(path) => self.file(&entry.name, Content::File(path)).await?,
                EntryKind::Directory(inner) => Box::pin(self.directory(&entry.name, inner)).await?,
            }
        }
        Ok(())
    }

    async fn directory(&mut self, name: &str, entries: Vec<Entry>) -> Result<()> {
        self.send(format!("D0755 0 {name}\n").into_bytes()).await?;
        self.answer().await?;
        self.entries(entries).await?;
        self.send(b"E\n".to_vec()).await?;
        self.answer().await
    }

    async fn file(&mut self, name: &str, content: Content) -> Result<()> {
        let (mut reading, mut length) = content.open(&self.progress).await?;
        let mut first = Vec::new();
        if length == 0 {
            // Files below /proc and /sys report length zero although they have content, but the header needs the real length. So a file of
            // length zero is read into memory first; such files are small.
            loop {
                let (next, block) = reading.block(BLOCK).await?;
                reading = next;
                if block.is_empty() {
                    break;
                }
                first.extend(block);
            }
            length = first.len() as u64;
        }
        self.send(format!("C0644 {length} {name}\n").into_bytes()).await?;
        self.answer().await?;
        let mut left = length - first.len() as u64;
        if !first.is_empty() {
            self.send(first).await?;
        }
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let (next, block) = reading.block(wanted).await?;
            reading = next;
            // The length in the header has been sent, and cannot be corrected.
            if block.is_empty() {
                return Err(Error::fatal(format!("{name} became shorter while it was copied")));
            }
            left -= block.len() as u64;
            self.send(block).await?;
        }
        self.send(vec![0]).await?;
        self.answer().await
    }

    async fn send(&mut self, data: Vec<u8>) -> Result<()> {
        match self.channel.data_bytes(data).await {
            Ok(()) => Ok(()),
            // The program has ended early. Its error output may have the reason.
            Err(error) => Err(self.gone().await.unwrap_or_else(|| error.into())),
        }
    }

    /// Waits for an acknowledgement: a zero byte, or a code and a line of text.
    async fn answer(&mut self) -> Result<()> {
        while self.answers.is_empty() {
            if !self.receive().await {
                return Err(self.gone().await.unwrap_or_else(|| russh::Error::HUP.into()));
            }
        }
        if self.answers.remove(0) == 0 {
            return Ok(());
        }
        while !self.answers.contains(&b'\n') && self.receive().await {}
        let line = self.answers.split(|b| *b == b'\n').next().unwrap_or_default();
        Err(Error::fatal(String::from_utf8_lossy(line).trim().to_owned()))
    }

    /// Receives and handles a message of the server. Returns false once the program has ended.
    async fn receive(&mut self) -> bool {
        match self.channel.wait().await {
            Some(ChannelMsg::Data { data }) => self.answers.extend_from_slice(&data),
            Some(ChannelMsg::ExtendedData { data, .. }) => self.said.push(&data),
            Some(ChannelMsg::ExitStatus { exit_status }) => self.status = Some(exit_status),
            Some(ChannelMsg::Failure) | None => self.ended = true,
            Some(ChannelMsg::Close) => self.ended = true,
            Some(_) => {}
        }
        !self.ended
    }

    /// Waits for the end of the program. Returns the reason if it has failed.
    async fn gone(&mut self) -> Option<Error> {
        while !self.ended {
            self.receive().await;
        }
        self.problem()
    }

    fn problem(&self) -> Option<Error> {
        match self.status {
            None | Some(0) => None,
            Some(127) => Some(Error::fatal(
                "The remote machine has no program scp, and its SSH server has no SFTP: install one of them there.",
            )),
            Some(status) => {
                let said = self.said.text();
                let last = said.lines().last().map(|line| format!(": {}", line.trim()));
                Some(Error::fatal(format!(
                    "Process exited with status {status}{}",
                    last.unwrap_or_default()
                )))
            }
        }
    }

    /// Ends the input, and waits until the program has ended.
    async fn finish(mut self) -> Result<()> {
        drop(self.channel.eof().await);
        match self.gone().await {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
