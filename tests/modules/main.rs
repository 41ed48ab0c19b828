//! Installation of modules: registries, archives, git repositories, buckets, directories; by the real executable, from
//! servers and repositories of the tests.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod archives;
mod buckets;
mod git;
mod local;
mod mirror;
mod registry;
mod tests;

use std::io::Write;

/// Makes a compressed tar archive of these files.
fn tgz(files: &[(&str, &str)]) -> Vec<u8> {
    let mut out = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        out.append_data(&mut header, name, text.as_bytes()).expect("an entry");
    }
    out.into_inner().expect("an archive").finish().expect("an archive")
}

/// Makes a zip archive of these files.
fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        out.start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("an entry");
        out.write_all(text.as_bytes()).expect("an entry");
    }
    out.finish().expect("an archive").into_inner()
}

/// Returns a module with one output.
fn says(text: &str) -> String {
    format!("output \"said\" {{\n  value = \"{text}\"\n}}\n")
}

/// Returns a configuration that calls a module and has its output.
fn call(source: &str, more: &str) -> String {
    format!(
        "module \"m\" {{\n  source = \"{source}\"\n  {more}\n}}\n\noutput \"said\" {{\n  value = module.m.said\n}}\n"
    )
}
