//! Fuzz target: any bytes as an archive of each format. No crash, and nothing is written outside of the target
//! directory or beyond the limits.

#![no_main]

use archive::{Entries, Format, Limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("archive");
    std::fs::write(&file, bytes).expect("a file");
    let limits = Limits {
        bytes: 1 << 20,
        entries: 100,
        ..Limits::default()
    };
    for (number, format) in [Format::Zip, Format::TarGz, Format::TarBz2, Format::TarXz].into_iter().enumerate() {
        let to = dir.path().join(number.to_string());
        drop(archive::unpack(format, &file, &to, Entries::Links, &limits));
    }
    let files = Entries::Files { executable: "terraform-" };
    drop(archive::unpack(Format::Zip, &file, &dir.path().join("files"), files, &limits));
    drop(archive::read_zip(&file, &limits, |_, content| std::io::copy(content, &mut std::io::sink()).map(drop)));
    for entry in std::fs::read_dir(dir.path()).expect("the directory") {
        let name = entry.expect("an entry").file_name();
        let known = ["archive", "files", "0", "1", "2", "3"];
        assert!(known.iter().any(|known| name == *known), "{name:?} is outside");
    }
});
