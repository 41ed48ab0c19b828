//! Writing the CLI configuration of a pack to a file.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use files::{Output, Policy};
use pack::Pack;

use super::failed;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

const SUMMARY: &str = "Cannot unpack the CLI configuration";

pub(super) fn write(session: &Session, pack: &Pack, path: &Path, replace: bool) -> Result<Outcome, Failure> {
    let text = match pack.cli_config() {
        Ok(Some(text)) => text,
        Ok(None) => {
            let detail = format!(
                "The pack {} has no CLI configuration. \"pack -cli-config=FILE\" makes one that does.",
                pack.path().display()
            );
            return Err(Failure::new(SUMMARY, detail));
        }
        Err(error) => return Err(failed(SUMMARY, &error)),
    };
    let shown = path.display();
    let style = session.ui.style();
    match fs::metadata(path) {
        // Nothing is lost by writing to a device or a pipe.
        Ok(meta) if meta.is_file() => match is_content(path, meta.len(), &text) {
            Ok(true) => {
                let line = format!("The CLI configuration in {shown} is there already.");
                return Ok(Outcome::line(style.good(line)));
            }
            Ok(false) if replace => {}
            Ok(false) => {
                let detail = format!(
                    "The file {shown} differs from the CLI configuration of the pack. Nothing was written. The option -replace \
                     replaces it."
                );
                return Err(Failure::new(SUMMARY, detail));
            }
            Err(error) => {
                let reason = files::io_reason(&error);
                return Err(Failure::new(SUMMARY, format!("{shown} cannot be read: {reason}.")));
            }
        },
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            let reason = files::io_reason(&error);
            return Err(Failure::new(SUMMARY, format!("{shown} cannot be written: {reason}.")));
        }
    }
    // Readable for the user only, since the user may add credentials to it.
    let written = Output::create(path, Policy::SECRET).and_then(|mut out| {
        out.write_all(&text)?;
        out.commit()
    });
    match written {
        Ok(()) => {
            let line = format!("The CLI configuration of the pack is in {shown}.");
            Ok(Outcome::line(style.good(line)))
        }
        Err(error) => {
            let reason = files::io_reason(&error);
            Err(Failure::new(SUMMARY, format!("{shown} cannot be written: {reason}.")))
        }
    }
}

/// Returns true if a file of this length has this content.
fn is_content(path: &Path, length: u64, text: &[u8]) -> std::io::Result<bool> {
    Ok(length == text.len() as u64 && fs::read(path)? == text)
}
