//! Checksums of provider packages, as lock files record them.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use archive::Limits;
use base64::Engine;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Computes the `h1:` checksum of an unpacked package, over the names and contents of all its files.
pub fn directory(dir: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    collect(dir, String::new(), 0, &mut files)?;
    h1(files)
}

/// Computes the `h1:` checksum of a package that consists of one file.
pub fn single_file(file: &Path) -> io::Result<String> {
    let name = file
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    h1(vec![(name, file.to_owned())])
}

/// Computes the `h1:` checksum of a package in a zip archive. Unlike that of a directory, it includes entries that are
/// directories, as in Go's dirhash.
///
/// # Errors
///
/// The archive cannot be read or exceeds the limits.
pub fn archive(file: &Path, limits: &Limits) -> Result<String, archive::Error> {
    let mut lines = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    archive::read_zip(file, limits, |name, mut content| {
        lines.push((name.to_owned(), digest(&mut content, &mut buffer)?));
        Ok(())
    })?;
    Ok(summed(lines))
}

/// Computes the `zh:` checksum of an archive, over its bytes.
pub fn bytes(file: &Path) -> io::Result<String> {
    let sum = digest(&mut std::fs::File::open(file)?, &mut vec![0; 1 << 20])?;
    Ok(format!("zh:{sum}"))
}

fn digest(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<String> {
    let mut content = Sha256::new();
    loop {
        match from.read(buffer)? {
            0 => return Ok(HEXLOWER.encode(&content.finalize())),
            n => content.update(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// Computes the `h1:` checksum of files from their names and SHA-256 checksums.
pub(crate) fn summed(mut lines: Vec<(String, String)>) -> String {
    // The format is that of sha256sum, sorted by name, as in Go's dirhash.
    lines.sort();
    let mut whole = Sha256::new();
    for (name, sum) in lines {
        whole.update(format!("{sum}  {name}\n"));
    }
    format!(
        "h1:{}",
        base64::engine::general_purpose::STANDARD.encode(whole.finalize())
    )
}

fn collect(dir: &Path, prefix: String, depth: usize, out: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    // The limit keeps the recursion from exhausting the stack. Links to directories are not followed.
    if depth > 64 {
        return Err(io::Error::other("the directories of the package are nested too deep"));
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), name + "/", depth + 1, out)?;
        } else {
            out.push((name, entry.path()));
        }
    }
    Ok(())
}

/// Computes the `h1:` checksum of files with these names in their package.
pub(crate) fn h1(files: Vec<(String, PathBuf)>) -> io::Result<String> {
    let mut buffer = vec![0; 1 << 20];
    let mut lines = Vec::with_capacity(files.len());
    for (name, path) in files {
        lines.push((name, digest(&mut std::fs::File::open(path)?, &mut buffer)?));
    }
    Ok(summed(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_that_terraform_writes() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("terraform-provider-demo_v2.3.1");
        std::fs::write(&file, "hello 2.3.1\n").unwrap();
        let expected = "h1:HjQrdQkcyU/G2Tnaxf3TWWQQCacIKfjFwpdrCKgLncg=";
        assert_eq!(directory(dir.path()).unwrap(), expected);
        assert_eq!(single_file(&file).unwrap(), expected);
        std::fs::create_dir(dir.path().join("empty")).unwrap();
        assert_eq!(
            directory(dir.path()).unwrap(),
            expected,
            "empty directories do not count"
        );
        std::fs::write(dir.path().join("empty/more"), "x").unwrap();
        assert_ne!(directory(dir.path()).unwrap(), expected);
    }
}
