//! Writer of a journal: a thread appends all waiting records, syncs them to the disk once, and answers their tickets.
//!
//! Appending never blocks. A caller that needs durability awaits the returned [`Ticket`]. If writing fails, tickets return the error.
//! Outcomes are kept in memory and written again with the next record. Intents are dropped, because their operations do not begin.
//!
//! The thread holds a lock on the file while it runs, so that other programs do not mistake the journal for a leftover of a killed run.

#![expect(clippy::disallowed_methods, reason = "intents have their time")]

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use system::files::OpenOptionsExt as _;

use super::format::{self, InFlight, MAGIC, Opened, Record, SEALED_MAGIC};
use super::queue::{Item, MANY, Queue, Shared, Slot};
use super::recorder::{RecordSink, Recorder};
use super::replay::answered;
use super::{Answers, Base, Intent, IntentAction, IntentKey, Outcome};
use crate::{Codec, StateError};

pub use super::queue::{JournalError, Ticket};

/// Size in bytes above which a journal is compacted. Replacing a smaller file is not worthwhile.
const COMPACTED_ABOVE: u64 = 1 << 20;

/// Handle of a journal that is being written. Clones write to the same journal.
#[derive(Clone, Debug)]
pub struct Writer(Arc<Shared>);

impl Writer {
    /// Creates a journal at a path where there is none.
    ///
    /// # Errors
    /// The file exists already, or cannot be created.
    pub fn create(
        path: &Path,
        base: Base,
        operation: &str,
        terraform_version: &str,
        codec: &Codec,
    ) -> Result<Writer, StateError> {
        let opened = Opened {
            base,
            operation: operation.to_owned(),
            since: jiff::Timestamp::now().to_string(),
            terraform_version: terraform_version.to_owned(),
            ended: false,
        };
        let bytes = first_bytes(&opened, &[], codec)?;
        let cannot = |e| StateError::io("cannot create the journal", path, e);
        let file = create_locked(path).map_err(cannot)?;
        let written = (&file).write_all(&bytes).and_then(|()| file.sync_all());
        if let Err(e) = written {
            // The file has no records yet, so removing it loses nothing.
            let _ = fs::remove_file(path);
            return Err(cannot(e));
        }
        // Without this sync, a power cut could lose the name of the file in the directory, and with it the
        // records.
        files::sync_directory_of(path);
        Writer::start(path, file, opened, bytes.len() as u64, codec.clone()).map_err(cannot)
    }

    fn start(path: &Path, file: File, opened: Opened, size: u64, codec: Codec) -> io::Result<Writer> {
        let shared = Arc::new(Shared::new(Some(path.to_owned())));
        shared.size.store(size, Ordering::Relaxed);
        let mut appender = Appender {
            path: path.to_owned(),
            shared: shared.clone(),
            file,
            opened,
            size,
            backlog: Vec::new(),
            open: BTreeMap::new(),
            recent: VecDeque::new(),
            codec,
        };
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || appender.run())?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Writer(shared))
    }

    /// Creates the journal of a run whose records go to a store.
    ///
    /// # Errors
    /// No more threads can be started.
    pub fn in_store(sink: Box<dyn RecordSink>) -> io::Result<Writer> {
        let shared = Arc::new(Shared::new(None));
        let mut recorder = Recorder::new(shared.clone(), sink);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || recorder.run())?;
        *shared.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Writer(shared))
    }

    /// Returns the path of the file; `None` if the records go to a store.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size.load(Ordering::Relaxed)
    }

    /// Returns true if the journal should be compacted after the next write of the state file.
    #[must_use]
    pub fn wants_compaction(&self) -> bool {
        self.size() > COMPACTED_ABOVE || self.0.failing.load(Ordering::Relaxed)
    }

    /// Records an intent. The operation may begin when the ticket returns `Ok`.
    #[must_use]
    pub fn begin(&self, intent: &Intent) -> Ticket {
        let intent = InFlight::new(intent, jiff::Timestamp::now().to_string());
        self.send_waiting(|slot| Item::Begin(intent, slot))
    }

    /// Records changed objects, and returns the number of the outcome.
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        let mut queue = self.queue();
        queue.outcomes += 1;
        let ends = outcome.answers != Answers::Nothing;
        let number = queue.outcomes;
        // The thread is not woken, because callers that need the outcome to be durable call `sync`.
        queue.items.push(Item::Outcome(number, Box::new(outcome)));
        if ends {
            self.one_has_ended(&mut queue);
        }
        number
    }

    /// Records the end of an operation that changed nothing.
    pub fn end(&self, key: IntentKey) {
        let mut queue = self.queue();
        queue.items.push(Item::End(key));
        self.one_has_ended(&mut queue);
    }

    /// Counts an operation as ended. If few operations are left, waiting is not worthwhile any more, and queued intents are written at
    /// once.
    fn one_has_ended(&self, queue: &mut Queue) {
        queue.ended();
        if queue.intents > 0 && queue.under_way() == MANY {
            self.0.hurry(queue);
        }
    }

    /// Returns a ticket for all records so far.
    #[must_use]
    pub fn sync(&self) -> Ticket {
        let queue = self.queue();
        // Usually the queue has already been written, which saves a round trip to the thread.
        if queue.items.is_empty() && !queue.unwritten && !queue.ended {
            return Ticket::answered(Ok(()));
        }
        drop(queue);
        self.send_waiting(Item::Sync)
    }

    /// Announces that the state file is about to become this one.
    ///
    /// # Errors
    /// The announcement could not be written.
    pub fn announce(&self, base: Base) -> Result<(), JournalError> {
        self.send_waiting(|slot| Item::Fold(base, slot)).wait()
    }

    /// Replaces the journal by one that continues this state. The state has all outcomes up to the number `included`.
    pub fn compact(&self, included: u64, base: Base) {
        let mut queue = self.queue();
        queue.urgent += 1;
        queue.items.push(Item::Compact(included, base));
        self.0.work.notify_one();
    }

    /// Ends the journal of a run whose results are all in a state. The file is removed, unless there are creations whose result is unknown:
    /// these remain in it. Only in that case `base` is called, because it encodes the state.
    ///
    /// # Errors
    /// The file cannot be removed, or the state cannot be encoded.
    pub fn end_run(self, base: impl FnOnce() -> Result<Base, StateError>) -> Result<(), StateError> {
        // An error of writing can be ignored: which operations are open is known in memory.
        let _ = self.sync().wait();
        // A store records itself which operations have not ended.
        if self.0.path.is_none() || self.0.creating.load(Ordering::Relaxed) == 0 {
            return self.remove();
        }
        let left = base().map(|base| self.queue().items.push(Item::Leave(base)));
        self.stop();
        left
    }

    /// Ends the journal, whose results are all in the state file, and removes it.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(self) -> Result<(), StateError> {
        let Some(path) = &self.0.path else {
            self.stop();
            return Ok(());
        };
        // The file is removed while the thread still holds the lock, so that no other program takes it for a leftover.
        let removed = fs::remove_file(path);
        self.stop();
        match removed {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StateError::io("cannot remove", path, e)),
            _ => Ok(()),
        }
    }

    /// Ends the thread after all queued items, without removing the file.
    pub fn stop(&self) {
        self.queue().ended = true;
        self.0.work.notify_all();
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::warn!("the thread of the journal has failed");
        }
    }

    fn send_waiting(&self, item: impl FnOnce(Arc<Slot>) -> Item) -> Ticket {
        let slot = Arc::new(Slot::default());
        let mut queue = self.queue();
        if queue.ended {
            return Ticket::answered(Err(JournalError::Ended));
        }
        let item = item(slot.clone());
        let begins = matches!(item, Item::Begin(..));
        let patient = begins || matches!(item, Item::Sync(_));
        queue.items.push(item);
        queue.awaited += 1;
        queue.patient += usize::from(patient);
        queue.running += usize::from(begins);
        queue.intents += usize::from(begins);
        if !patient {
            self.0.hurry(&mut queue);
        } else if queue.awaited == 1 {
            // The thread starts its waiting time now, and later items are written together with this one.
            self.0.work.notify_one();
        }
        Ticket::pending(slot, &self.0, patient)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue()
    }
}

/// Creates a locked file that only its owner may read.
fn create_locked(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    match system::locks::try_lock(&file) {
        Ok(true) => Ok(file),
        Ok(false) => Err(io::ErrorKind::WouldBlock.into()),
        Err(e) => Err(e),
    }
}

fn first_bytes(opened: &Opened, records: &[&[u8]], codec: &Codec) -> Result<Vec<u8>, StateError> {
    let magic = if codec.cipher().is_some() { SEALED_MAGIC } else { MAGIC };
    let mut bytes = magic.to_vec();
    let opened = format::encode(&Record::Opened(opened.clone()))?;
    format::frame(&codec.seal_record(&opened)?, 0, &mut bytes)?;
    for record in records {
        format::frame(&codec.seal_record(record)?, 0, &mut bytes)?;
    }
    Ok(bytes)
}

struct Appender {
    path: PathBuf,
    shared: Arc<Shared>,
    file: File,
    opened: Opened,
    /// Length of the valid part of the file in bytes.
    size: u64,
    /// Texts of records that could not be written yet.
    backlog: Vec<Vec<u8>>,
    /// Intents of the operations that have not ended.
    open: BTreeMap<IntentKey, (IntentAction, Vec<u8>)>,
    /// Outcomes that the state file may not have yet, by their numbers.
    recent: VecDeque<(u64, Vec<u8>)>,
    codec: Codec,
}

impl Drop for Appender {
    fn drop(&mut self) {
        system::locks::unlock(&self.file);
    }
}

impl Appender {
    fn run(&mut self) {
        let shared = self.shared.clone();
        loop {
            let mut queue = shared.wait();
            let (items, ended) = (std::mem::take(&mut queue.items), queue.ended);
            // All waiting items are taken at once, so that one `fdatasync` covers them. The counters start again at zero for new items.
            (queue.urgent, queue.awaited, queue.intents, queue.patient) = (0, 0, 0, 0);
            queue.unwritten = true;
            drop(queue);
            self.write(items);
            shared.queue().unwritten = !self.backlog.is_empty();
            if ended {
                return;
            }
        }
    }

    /// Appends a group of records, syncs them to the disk, and answers their tickets.
    fn write(&mut self, items: Vec<Item>) {
        let mut slots = Vec::new();
        let mut begun = Vec::new();
        // Records that failed before are written first, because the order of records matters.
        let mut texts = std::mem::take(&mut self.backlog);
        let mut compact = None;
        let mut refused = None;
        for item in items {
            let text = match item {
                Item::Sync(slot) => {
                    slots.push(slot);
                    continue;
                }
                Item::Compact(included, base) => {
                    compact = Some((included, base));
                    continue;
                }
                Item::Leave(base) => {
                    self.open.retain(|_, (action, _)| *action == IntentAction::Create);
                    self.opened.ended = true;
                    compact = Some((u64::MAX, base));
                    continue;
                }
                Item::Begin(intent, slot) => {
                    slots.push(slot);
                    let (key, action) = (intent.key(), intent.action);
                    format::encode(&Record::Begin(intent)).inspect(|text| {
                        begun.push((key.clone(), texts.len()));
                        self.open.insert(key, (action, text.clone()));
                    })
                }
                Item::Outcome(number, outcome) => {
                    if let Some(key) = answered(&outcome) {
                        self.open.remove(&key);
                    }
                    format::encode(&Record::Outcome(outcome))
                        .inspect(|text| self.recent.push_back((number, text.clone())))
                }
                // The outcome of this operation has already ended it.
                Item::End(key) if self.open.remove(&key).is_none() => continue,
                Item::End(key) => format::encode(&Record::End(key)),
                Item::Fold(base, slot) => {
                    slots.push(slot);
                    format::encode(&Record::Fold(base))
                }
            };
            match text {
                Ok(text) => texts.push(text),
                Err(e) => refused = Some(JournalError::from(e)),
            }
        }
        let result = match refused {
            Some(refused) => Err(refused),
            None if texts.is_empty() => Ok(()),
            None => self.append(&texts).map_err(JournalError::from),
        };
        self.shared.failing.store(result.is_err(), Ordering::Relaxed);
        // Operations whose intents failed do not begin, so these intents must not be written later. Outcomes have happened, so they are
        // written again.
        if result.is_err() {
            for (key, _) in &begun {
                self.open.remove(key);
            }
            let dropped: Vec<usize> = begun.into_iter().map(|(_, at)| at).collect();
            let kept = texts.into_iter().enumerate().filter(|(at, _)| !dropped.contains(at));
            self.backlog = kept.map(|(_, text)| text).collect();
        }
        let creating = self.open.values().filter(|(action, _)| *action == IntentAction::Create);
        self.shared.creating.store(creating.count(), Ordering::Relaxed);
        for slot in slots {
            slot.answer(result.clone());
        }
        // The answers are sent first, because compaction takes long, and its failure is not an error of any record.
        if let Some((included, base)) = compact {
            self.compact(included, base);
        }
    }

    fn append(&mut self, texts: &[Vec<u8>]) -> Result<(), StateError> {
        let mut bytes = Vec::new();
        for text in texts {
            format::frame(&self.codec.seal_record(text)?, self.size, &mut bytes)?;
        }
        let written = (&self.file).write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(e) = written {
            // A partly written record is removed, so that the next one does not follow it.
            if let Err(e) = self.back_to_size() {
                tracing::warn!("the journal {} cannot be cut: {e}", self.path.display());
            }
            return Err(StateError::io("cannot write the journal", &self.path, e));
        }
        self.size += bytes.len() as u64;
        self.shared.size.store(self.size, Ordering::Relaxed);
        Ok(())
    }

    fn back_to_size(&self) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom};
        self.file.set_len(self.size)?;
        (&self.file).seek(SeekFrom::Start(self.size)).map(drop)
    }

    /// Replaces the file by one that continues a later state. It contains the outcomes and intents that this state does not have.
    fn compact(&mut self, included: u64, base: Base) {
        while self.recent.front().is_some_and(|(number, _)| *number <= included) {
            self.recent.pop_front();
        }
        let opened = Opened {
            base,
            ..self.opened.clone()
        };
        match self.replace(&opened) {
            Ok((file, size)) => {
                self.file = file;
                self.opened = opened;
                self.size = size;
                // The backlog is either in the new file, which has all open intents and recent outcomes, or in the state.
                self.backlog.clear();
                self.shared.failing.store(false, Ordering::Relaxed);
                self.shared.size.store(size, Ordering::Relaxed);
            }
            Err(e) => tracing::warn!("the journal cannot be made smaller: {e}"),
        }
    }

    fn replace(&self, opened: &Opened) -> Result<(File, u64), StateError> {
        let path = &self.path;
        let cannot = |e| StateError::io("cannot write the journal", path, e);
        let intents = self.open.values().map(|(_, text)| text.as_slice());
        let outcomes = self.recent.iter().map(|(_, text)| text.as_slice());
        // An open intent was begun after the last outcome of its object, and the order among different objects does not matter, so all
        // outcomes are written before the intents.
        let bytes = first_bytes(opened, &outcomes.chain(intents).collect::<Vec<_>>(), &self.codec)?;
        let new = crate::beside::beside(path, "", ".new");
        // A killed run may have left a file with this name, with which `create_new` would fail.
        match fs::remove_file(&new) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(cannot(e)),
            _ => {}
        }
        let write = || {
            let file = create_locked(&new)?;
            (&file).write_all(&bytes)?;
            file.sync_all()?;
            system::rename(&new, path)?;
            Ok(file)
        };
        let file = write().map_err(|e| {
            // The incomplete file is useless, so it is removed.
            let _ = fs::remove_file(&new);
            cannot(e)
        })?;
        files::sync_directory_of(path);
        Ok((file, bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests;
