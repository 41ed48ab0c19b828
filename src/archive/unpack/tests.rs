use super::*;
use std::io::Write;

/// An entry of a tar archive, written without the checks of a library.
fn entry(kind: tar::EntryType, name: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    let bytes = header.as_mut_bytes();
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes[157..157 + link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    out.extend_from_slice(content);
    out.resize(out.len().div_ceil(512) * 512, 0);
    out
}

fn limits(entries: usize, bytes: u64) -> Limits {
    Limits {
        bytes,
        entries,
        ..Limits::default()
    }
}

fn try_tar(entries: &[Vec<u8>]) -> Result<tempfile::TempDir, Error> {
    let dir = tempfile::tempdir().unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&entries.concat()).unwrap();
    gz.write_all(&[0; 1024]).unwrap();
    let file = dir.path().join("a.tgz");
    fs::write(&file, gz.finish().unwrap()).unwrap();
    unpack(
        Format::TarGz,
        &file,
        &dir.path().join("out"),
        Entries::Links,
        &limits(10, 10_000),
    )?;
    Ok(dir)
}

use tar::EntryType as T;

#[test]
fn tar_with_links_inside_is_unpacked() {
    let dir = try_tar(&[
        entry(T::XGlobalHeader, "pax_global_header", "", b"20 comment=0123456\n"),
        entry(T::Directory, "./m/", "", b""),
        entry(T::Symlink, "m/l/up.tf", "../main.tf", b""),
        entry(T::Regular, "m/main.tf", "", b"text"),
        entry(T::Link, "m/same.tf", "m/main.tf", b""),
    ])
    .unwrap();
    for name in ["main.tf", "same.tf", "l/up.tf"] {
        assert_eq!(
            fs::read(dir.path().join("out/m").join(name)).unwrap(),
            b"text",
            "{name}"
        );
    }
}

#[test]
fn later_entry_replaces_earlier_one_of_another_kind() {
    let file = |text: &str| entry(T::Regular, "m/x", "", text.as_bytes());
    let (a, b) = (entry(T::Regular, "m/a", "", b"a"), entry(T::Regular, "m/b", "", b"b"));
    let symbolic = || entry(T::Symlink, "m/x", "a", b"");
    let hard = || entry(T::Link, "m/x", "m/b", b"");
    for (what, [first, second], expected) in [
        ("link over file", [file("x"), symbolic()], "a"),
        ("hard link over file", [file("x"), hard()], "b"),
        ("file over link", [symbolic(), file("x")], "x"),
        ("file over hard link", [hard(), file("x")], "x"),
        ("link over hard link", [hard(), symbolic()], "a"),
        ("hard link over link", [symbolic(), hard()], "b"),
        (
            "hard link to itself",
            [file("x"), entry(T::Link, "m/x", "m/x", b"")],
            "x",
        ),
    ] {
        let dir = try_tar(&[a.clone(), b.clone(), first, second]).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join("out/m").join(name)).unwrap();
        assert_eq!(read("x"), expected, "{what}");
        assert_eq!(read("a") + &read("b"), "ab", "{what}");
    }
}

#[test]
fn tar_with_entry_outside_or_special_or_too_large_is_rejected() {
    let file = |name: &str| entry(T::Regular, name, "", b"x");
    let link = |name: &str, to: &str| entry(T::Symlink, name, to, b"");
    type Expected = fn(&Error) -> bool;
    let cases: Vec<(&str, Expected, Vec<Vec<u8>>)> = vec![
        ("parent", |e| matches!(e, Error::Outside(_)), vec![file("../x")]),
        (
            "parent inside",
            |e| matches!(e, Error::Outside(_)),
            vec![file("a/../../x")],
        ),
        (
            "absolute",
            |e| matches!(e, Error::Outside(_)),
            vec![file("/tmp/monoform-x")],
        ),
        (
            "other separator",
            |e| matches!(e, Error::Outside(_)),
            vec![file("..\\x")],
        ),
        (
            "link out",
            |e| matches!(e, Error::LinkOutside { .. }),
            vec![link("l", "../..")],
        ),
        (
            "link absolute",
            |e| matches!(e, Error::LinkOutside { .. }),
            vec![link("l", "/etc")],
        ),
        (
            "link with a detour",
            |e| matches!(e, Error::LinkOutside { .. }),
            vec![link("b", "."), link("a", "b/..")],
        ),
        (
            "through a link",
            |e| matches!(e, Error::LinkAndDirectory(_)),
            vec![link("l", "d"), file("l/x")],
        ),
        (
            "through a link, later",
            |e| matches!(e, Error::LinkAndDirectory(_)),
            vec![file("l/x"), link("l", "d"), file("l/y")],
        ),
        (
            "link over a directory",
            |e| matches!(e, Error::LinkAndDirectory(_)),
            vec![file("d/x"), link("d", "e")],
        ),
        (
            "link below a link",
            |e| matches!(e, Error::LinkBelowNoDirectory(_)),
            vec![link("l", "."), link("l/m", "..")],
        ),
        (
            "hard link out",
            |e| matches!(e, Error::Outside(_)),
            vec![entry(T::Link, "h", "../a.tgz", b"")],
        ),
        (
            "hard link to a link",
            |e| matches!(e, Error::Entry { .. }),
            vec![link("l", "x"), entry(T::Link, "h", "l", b"")],
        ),
        (
            "device",
            |e| matches!(e, Error::Special(_)),
            vec![entry(T::Block, "d", "", b"")],
        ),
        (
            "pipe",
            |e| matches!(e, Error::Special(_)),
            vec![entry(T::Fifo, "d", "", b"")],
        ),
        ("nothing", |e| matches!(e, Error::Empty), vec![]),
        (
            "too large",
            |e| matches!(e, Error::TooLarge(_)),
            vec![entry(T::Regular, "x", "", &[0; 10_001])],
        ),
        (
            "too many",
            |e| matches!(e, Error::TooMany(_)),
            (0..11).map(|i| file(&format!("f{i}"))).collect(),
        ),
    ];
    for (what, expected, entries) in cases {
        let error = try_tar(&entries).unwrap_err();
        assert!(expected(&error), "{what}: {error}");
    }
}

#[test]
fn zip_with_entry_outside_or_too_large_is_rejected() {
    let make = |entries: &[(&str, &str, u32)]| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.zip");
        let mut writer = zip::ZipWriter::new(File::create(&file).unwrap());
        for (name, content, mode) in entries {
            let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode & 0o777);
            if mode & 0o170_000 == 0o120_000 {
                writer.add_symlink(*name, *content, options).unwrap();
            } else {
                writer.start_file(*name, options).unwrap();
                writer.write_all(content.as_bytes()).unwrap();
            }
        }
        writer.finish().unwrap();
        let done = unpack(
            Format::Zip,
            &file,
            &dir.path().join("out"),
            Entries::Links,
            &limits(10, 10_000),
        );
        done.map(|()| dir)
    };
    let dir = make(&[
        ("m/main.tf", "text", 0o644),
        ("m/run", "x", 0o755),
        ("m/l", "main.tf", 0o120_777),
    ])
    .unwrap();
    assert_eq!(fs::read(dir.path().join("out/m/l")).unwrap(), b"text");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| {
            fs::metadata(dir.path().join("out/m").join(name))
                .unwrap()
                .permissions()
                .mode()
        };
        assert_eq!((mode("run") & 0o100, mode("main.tf") & 0o100), (0o100, 0));
    }
    assert!(matches!(make(&[("../x", "x", 0o644)]), Err(Error::Outside(_))));
    assert!(matches!(make(&[("/x", "x", 0o644)]), Err(Error::Outside(_))));
    assert!(matches!(
        make(&[("l", "../x", 0o120_777)]),
        Err(Error::LinkOutside { .. })
    ));
    let long = format!("{}main.tf", "./".repeat(2045));
    assert_eq!(long.len(), 4097);
    for beyond in [&long, &format!("{long}/and/more")] {
        assert!(matches!(make(&[("l", beyond, 0o120_777)]), Err(Error::LinkTooLong(_))));
    }
    let bomb = "0".repeat(20_000);
    assert!(make(&[("x", &bomb, 0o644)]).unwrap_err().to_string().contains("larger"));
}

#[test]
fn archive_of_every_format_beyond_limit_is_rejected_with_variable_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut tar: Vec<u8> = (0..5)
        .flat_map(|i| entry(T::Regular, &format!("f{i}"), "", &[b'0'; 1000]))
        .collect();
    tar.resize(tar.len() + 1024, 0);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&tar).unwrap();
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bz2.write_all(&tar).unwrap();
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(0)).unwrap();
    xz.write_all(&tar).unwrap();
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for i in 0..5 {
        zip.start_file(format!("f{i}"), zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&[b'0'; 1000]).unwrap();
    }
    for (kind, bytes) in [
        (Format::TarGz, gz.finish().unwrap()),
        (Format::TarBz2, bz2.finish().unwrap()),
        (Format::TarXz, xz.finish().unwrap()),
        (Format::Zip, zip.finish().unwrap().into_inner()),
    ] {
        let file = dir.path().join("archive");
        fs::write(&file, bytes).unwrap();
        let mut count = 0;
        let mut refused = |entries, bytes, variable: &str| {
            count += 1;
            let error = unpack(
                kind,
                &file,
                &dir.path().join(format!("{kind:?}{count}")),
                Entries::Links,
                &limits(entries, bytes),
            );
            assert!(
                error.as_ref().is_err_and(|e| e.to_string().contains(variable)),
                "{kind:?}: {error:?}"
            );
        };
        refused(10, 4999, "MONOFORM_MAX_UNPACKED_SIZE");
        refused(4, 10_000, "MONOFORM_MAX_UNPACKED_FILES");
        let to = dir.path().join(format!("{kind:?}"));
        unpack(kind, &file, &to, Entries::Links, &limits(5, 5000)).unwrap();
    }
    // The stream has endless padding, and no entries.
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&entry(T::XGlobalHeader, "h", "", &[b' '; 60_000]))
        .unwrap();
    let file = dir.path().join("archive");
    fs::write(&file, gz.finish().unwrap()).unwrap();
    let error = unpack(
        Format::TarGz,
        &file,
        &dir.path().join("padding"),
        Entries::Links,
        &limits(2, 1000),
    )
    .unwrap_err();
    assert!(error.to_string().contains("1000 bytes"), "{error}");
}

fn unpack_files(file: &Path, to: &Path, limits: &Limits) -> Result<(), Error> {
    let entries = Entries::Files {
        executable: "terraform-provider-",
    };
    unpack(Format::Zip, file, to, entries, limits)
}

fn package(entries: &[(&str, &str, u32)]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, text, mode) in entries {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
        match text.strip_prefix("-> ") {
            Some(target) => zip.add_symlink(*name, target, options).unwrap(),
            None => {
                zip.start_file(*name, options).unwrap();
                zip.write_all(text.as_bytes()).unwrap();
            }
        }
    }
    file.write_all(&zip.finish().unwrap().into_inner()).unwrap();
    file
}

#[test]
fn files_only_archive_is_unpacked_and_named_files_become_executable() {
    let dir = tempfile::tempdir().unwrap();
    let zip = package(&[("terraform-provider-x", "run", 0o644), ("docs/a.txt", "text", 0o644)]);
    let dir = dir.path().join("to");
    unpack_files(zip.path(), &dir, &Limits::default()).unwrap();
    assert_eq!(fs::read_to_string(dir.join("docs/a.txt")).unwrap(), "text");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o100;
        assert_eq!((mode("terraform-provider-x"), mode("docs/a.txt")), (0o100, 0));
    }
}

#[test]
fn files_only_archive_with_link_or_path_outside_is_rejected() {
    for (name, text, expected) in [
        ("../out", "x", "outside"),
        ("a/../../out", "x", "outside"),
        ("/out", "x", "outside"),
        ("..\\out", "x", "outside"),
        ("C:out", "x", "outside"),
        ("link", "-> /etc", "is a link"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("to");
        let error = unpack_files(package(&[(name, text, 0o644)]).path(), &to, &Limits::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{name}");
    }
}

#[test]
fn files_only_archive_beyond_limit_is_rejected_with_limit_and_variable() {
    let limits = |bytes, entries| limits(entries, bytes);
    let dir = tempfile::tempdir().unwrap();
    let zip = package(&[("a", "12345", 0o644), ("b", "67890", 0o644)]);
    let error = unpack_files(zip.path(), &dir.path().join("a"), &limits(9, 10))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("larger than the 9 bytes") && error.contains("MONOFORM_MAX_UNPACKED_SIZE"),
        "{error}"
    );
    assert_eq!(
        fs::read_dir(dir.path().join("a")).unwrap().count(),
        0,
        "nothing is written"
    );
    let error = unpack_files(zip.path(), &dir.path().join("b"), &limits(99, 1))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("more than the 1 entries") && error.contains("MONOFORM_MAX_UNPACKED_FILES"),
        "{error}"
    );
    // A zip file that declares a small size.
    let mut bytes = fs::read(zip.path()).unwrap();
    let size = 5_u32.to_le_bytes();
    while let Some(at) = bytes.windows(8).position(|w| w[4..] == size && w[..4] == size) {
        bytes[at + 4..at + 8].copy_from_slice(&1_u32.to_le_bytes());
    }
    fs::write(zip.path(), bytes).unwrap();
    assert!(unpack_files(zip.path(), &dir.path().join("c"), &limits(6, 10)).is_err());
    let mut text = tempfile::NamedTempFile::new().unwrap();
    text.write_all(b"not an archive").unwrap();
    let error = unpack_files(text.path(), &dir.path().join("d"), &Limits::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a zip archive"), "{error}");
}
