//! Executables of this program, which packs begin with.
//!
//! `scripts/seal` appends a checksum of its own to a distributed executable: a line of text of [`SEAL`] bytes, with the SHA-256 of all
//! bytes before it. In a pack the line is a part of the executable.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use addrs::platform::Platform;
use memchr::memmem;

use crate::counted::digest;
use crate::elf::{SEAL, SEAL_PREFIX, Table, Tables, head_of, number, own_length};
use crate::error::{PackError, read_error};
use crate::read::Pack;
use crate::trust::Conditions;

/// Mark by which an executable of this program is recognized, with its version. The linker puts it into the read-only data.
#[used]
static MARK: &[u8] = concat!("monoform-executable ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();

/// Length of the mark without the version.
const FIXED: usize = "monoform-executable ".len();

/// Result of comparing an executable with its own checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The bytes are unchanged since the build.
    Matches,
    Differs,
    Missing,
}

/// Executable of this program, without the pack that may follow it.
#[derive(Clone, Debug)]
pub struct Executable {
    pub path: PathBuf,
    /// Number of bytes of the file that belong to the executable.
    pub size: u64,
    pub platform: Platform,
    pub version: String,
}

impl Executable {
    /// Opens the executable in a file. With `of_a_pack`, the file may be a pack, whose executable is the part before the contents.
    ///
    /// # Errors
    /// The file cannot be read, is not an executable of this program, is a pack although `of_a_pack` is false, or is a pack that is not
    /// trusted.
    pub fn open(path: &Path, of_a_pack: bool, conditions: &Conditions) -> Result<Executable, PackError> {
        if let Some(pack) = Pack::find(path, conditions)? {
            if !of_a_pack {
                return Err(PackError::PackOfPacks(path.to_owned()));
            }
            let packed = &pack.index().executable;
            return Ok(Executable {
                path: path.to_owned(),
                size: packed.size,
                platform: packed.platform.clone(),
                version: packed.version.clone(),
            });
        }
        let failed = read_error(path);
        let mut file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let platform = platform(&mut file).map_err(failed)?;
        let version = version(&mut file).map_err(failed)?;
        match (platform, version) {
            (Some(platform), Some(version)) => Ok(Executable {
                path: path.to_owned(),
                size,
                platform,
                version,
            }),
            _ => Err(PackError::NotMonoform(path.to_owned())),
        }
    }
}

impl Executable {
    /// Compares the executable with its own checksum.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checksum(&self) -> io::Result<Checksum> {
        let mut file = File::open(&self.path)?;
        let Some(content) = self.size.checked_sub(SEAL) else {
            return Ok(Checksum::Missing);
        };
        let mut seal = [0; SEAL as usize];
        file.seek(SeekFrom::Start(content))?;
        file.read_exact(&mut seal)?;
        let Some(recorded) = seal.strip_prefix(SEAL_PREFIX) else {
            return Ok(Checksum::Missing);
        };
        file.seek(SeekFrom::Start(0))?;
        let (sum, _) = digest(file.take(content))?;
        Ok(match recorded == format!("{sum}\n").as_bytes() {
            true => Checksum::Matches,
            false => Checksum::Differs,
        })
    }
}

/// Linkage of an executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// The executable needs no libraries of the system, and no loader.
    Static,
    /// The executable uses shared libraries, which a loader finds.
    Dynamic,
    /// The file is of a kind whose header is not read.
    Unknown,
}

/// Type of the ELF segment that names the loader (`PT_INTERP`).
const INTERPRETER: u64 = 3;

/// Limit of the number of segments, which no executable reaches.
const MOST_SEGMENTS: u64 = 1 << 10;

impl Linking {
    /// Returns the linkage of the executable in a file.
    ///
    /// # Errors
    /// The file cannot be read, or ends before its table of segments does.
    pub fn detect(path: &Path) -> io::Result<Linking> {
        let mut file = File::open(path)?;
        let mut head = [0; 64];
        let head = head_of(&mut file, &mut head)?;
        let Some(tables) = Tables::of(head) else {
            return Ok(match head.starts_with(b"MZ") {
                // A Windows program uses the system only through its libraries.
                true => Linking::Dynamic,
                false => Linking::Unknown,
            });
        };
        let Table { offset, entry, count } = tables.segments;
        if entry < 4 || count > MOST_SEGMENTS {
            return Ok(Linking::Unknown);
        }
        let mut segments = vec![0; usize::try_from(entry * count).unwrap_or_default()];
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(&mut segments)?;
        let mut kinds = segments
            .chunks(usize::try_from(entry).unwrap_or(1))
            .map(|segment| number(segment, 0, 4));
        Ok(match kinds.any(|kind| kind == INTERPRETER) {
            true => Linking::Dynamic,
            false => Linking::Static,
        })
    }
}

/// Returns true if an executable is shorter than its header declares, as a truncated copy is; false if the header declares no length.
///
/// # Errors
/// The file cannot be read.
pub fn is_cut_off(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    Ok(own_length(&mut file)?.is_some_and(|length| length > size || is_in_seal(&mut file, length, size)))
}

/// Returns true if a file ends within the line with its checksum.
fn is_in_seal(file: &mut File, own: u64, size: u64) -> bool {
    if !(own + 1..own + SEAL).contains(&size) {
        return false;
    }
    let mut rest = Vec::new();
    let read = file
        .seek(SeekFrom::Start(own))
        .and_then(|_| file.read_to_end(&mut rest));
    let common = rest.len().min(SEAL_PREFIX.len());
    read.is_ok() && rest.get(..common) == SEAL_PREFIX.get(..common)
}

/// Returns the platform of an executable from its first bytes (ELF, Mach-O or PE); `None` for any other file or processor.
fn platform(file: &mut File) -> io::Result<Option<Platform>> {
    let mut head = [0; 1024];
    let head = head_of(file, &mut head)?;
    let word = |at: usize| -> Option<u16> { Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?)) };
    let long = |at: usize| -> Option<u32> { Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?)) };
    let named = |os: &str, arch: &str| Platform {
        os: os.to_owned(),
        arch: arch.to_owned(),
    };
    if head.starts_with(b"\x7fELF") {
        // These are machine numbers of the ELF specification.
        let arch = match word(18) {
            Some(3) => "386",
            Some(40) => "arm",
            Some(62) => "amd64",
            Some(183) => "arm64",
            Some(243) => "riscv64",
            Some(258) => "loong64",
            Some(21) => "ppc64le",
            _ => return Ok(None),
        };
        // In this field, executables for Linux usually have the value of System V instead of their own.
        let os = match head.get(7) {
            Some(9) => "freebsd",
            _ => "linux",
        };
        return Ok(Some(named(os, arch)));
    }
    if long(0) == Some(0xfeed_facf) {
        return Ok(match long(4) {
            Some(0x0100_0007) => Some(named("darwin", "amd64")),
            Some(0x0100_000c) => Some(named("darwin", "arm64")),
            _ => None,
        });
    }
    if head.starts_with(b"MZ") {
        let at = long(0x3c).and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
        // The machine number follows the four bytes of the PE signature.
        return Ok(match word(at.saturating_add(4)) {
            Some(0x014c) => Some(named("windows", "386")),
            Some(0x8664) => Some(named("windows", "amd64")),
            Some(0xaa64) => Some(named("windows", "arm64")),
            _ => None,
        });
    }
    Ok(None)
}

/// Searches an executable for [`MARK`] and returns the version after it; `None` if the file has no mark.
fn version(file: &mut File) -> io::Result<Option<String>> {
    /// Overlap of two search windows: more than the length of a mark with its version, so that none is missed.
    const OVERLAP: usize = 128;
    file.seek(SeekFrom::Start(0))?;
    let mut window = Vec::new();
    let fixed = MARK.get(..FIXED).unwrap_or_default();
    loop {
        let kept = window.len().min(OVERLAP);
        window.drain(..window.len() - kept);
        if file.by_ref().take(1 << 22).read_to_end(&mut window)? == 0 {
            return Ok(None);
        }
        for at in memmem::find_iter(&window, fixed) {
            let rest = window.get(at + FIXED..).unwrap_or_default();
            let text = rest.split(|b| *b == b'\n').next().unwrap_or_default();
            // If a mark is at the end of the window, its version is in the next window.
            let text = std::str::from_utf8(text).ok().filter(|_| text.len() < rest.len());
            if let Some(version) = text.filter(|text| versions::Version::parse(text).is_ok()) {
                return Ok(Some(version.to_owned()));
            }
        }
    }
}
