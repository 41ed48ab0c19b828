//! Repetition of file operations that fail while another program has the file open.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::Os;

/// Error numbers of Windows: access denied, sharing violation, lock violation.
const IN_USE: [i32; 3] = [5, 32, 33];

/// Longest pause between attempts. Each pause is twice as long as the one before, so this last one is about half of the total time.
const LONGEST: Duration = Duration::from_millis(320);

/// Pauses for repeating an operation on a file that another program may have open.
///
/// On Windows, a file cannot be replaced, renamed or removed while a program has it open without allowing that. Virus scanners and indexers
/// have a new file open in this way for some 10 ms. On other systems, nothing is repeated.
#[derive(Debug)]
pub struct WhileInUse {
    os: Os,
    next: Duration,
}

impl WhileInUse {
    /// Starts with the shortest pause.
    #[must_use]
    pub fn new(os: Os) -> WhileInUse {
        WhileInUse {
            os,
            next: Duration::from_millis(5),
        }
    }

    /// Returns the time to wait before the next attempt; `None` if the error is final.
    pub fn wait(&mut self, error: &io::Error) -> Option<Duration> {
        let in_use = error.raw_os_error().is_some_and(|number| IN_USE.contains(&number));
        let wait = (self.os == Os::Windows && in_use && self.next <= LONGEST).then_some(self.next);
        self.next *= 2;
        wait
    }

    /// Waits before the next attempt. Returns false without waiting if the error is final.
    pub fn passes(&mut self, error: &io::Error) -> bool {
        self.wait(error).map(std::thread::sleep).is_some()
    }
}

/// Renames a file or a directory. On Windows, repeats the attempt while another program has it open.
///
/// # Errors
/// It cannot be renamed.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let mut again = WhileInUse::new(Os::CURRENT);
    loop {
        match std::fs::rename(from, to) {
            // Windows never replaces a directory. It reports that with the error number of a file in use, but repeating cannot help.
            Err(error) if !to.is_dir() && again.passes(&error) => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_in_use_is_tried_again_for_half_a_second_on_windows_only() {
        let waits = |os: Os, number: i32| {
            let mut again = WhileInUse::new(os);
            let error = io::Error::from_raw_os_error(number);
            std::iter::from_fn(|| again.wait(&error)).sum::<Duration>()
        };
        for number in IN_USE {
            assert_eq!(waits(Os::Windows, number), Duration::from_millis(635));
            assert_eq!(waits(Os::Unix, number), Duration::ZERO);
            assert_eq!(waits(Os::MacOs, number), Duration::ZERO);
        }
        assert_eq!(
            waits(Os::Windows, 2),
            Duration::ZERO,
            "a missing file is no file in use"
        );
    }

    #[test]
    fn file_is_renamed_over_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        rename(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "new");
        assert_eq!(rename(&from, &to).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
