//! Platform of an executable, from its header.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use addrs::platform::Platform;

/// Number of bytes that are read. The offset at 0x3c of a PE file leads to its header, usually below 0x200.
const HEAD: u64 = 4096;

/// Reads the platform of an executable; `None` if the file is no executable of a known system.
///
/// # Errors
/// The file cannot be read.
pub fn of(path: &Path) -> io::Result<Option<Platform>> {
    let mut head = Vec::new();
    File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(of_head(&head).map(|(os, arch)| Platform {
        os: os.to_owned(),
        arch: arch.to_owned(),
    }))
}

fn of_head(head: &[u8]) -> Option<(&'static str, &'static str)> {
    elf(head).or_else(|| mach_o(head)).or_else(|| pe(head))
}

fn u16_at(head: &[u8], at: usize, big: bool) -> Option<u16> {
    let bytes: [u8; 2] = head.get(at..at + 2)?.try_into().ok()?;
    Some(if big {
        u16::from_be_bytes(bytes)
    } else {
        u16::from_le_bytes(bytes)
    })
}

fn u32_at(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?))
}

fn elf(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let (is_64, is_big) = (*head.get(4)? == 2, *head.get(5)? == 2);
    let arch = match u16_at(head, 18, is_big)? {
        3 => "386",
        8 if is_64 && is_big => "mips64",
        8 if is_64 => "mips64le",
        8 if is_big => "mips",
        8 => "mipsle",
        21 if is_big => "ppc64",
        21 => "ppc64le",
        22 => "s390x",
        40 => "arm",
        62 => "amd64",
        183 => "arm64",
        243 if is_64 => "riscv64",
        258 => "loong64",
        _ => return None,
    };
    let contains = |note: &[u8]| head.windows(note.len()).any(|window| window == note);
    // Linux and some other systems leave the byte of the system at 0, and are distinguished by a note.
    let os = match *head.get(7)? {
        9 => "freebsd",
        6 => "solaris",
        _ if contains(b"OpenBSD\0") => "openbsd",
        _ if contains(b"NetBSD\0") => "netbsd",
        _ => "linux",
    };
    Some((os, arch))
}

fn mach_o(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if u32_at(head, 0)? != 0xfeed_facf {
        return None;
    }
    match u32_at(head, 4)? {
        0x0100_0007 => Some(("darwin", "amd64")),
        0x0100_000c => Some(("darwin", "arm64")),
        _ => None,
    }
}

fn pe(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if !head.starts_with(b"MZ") {
        return None;
    }
    let at = usize::try_from(u32_at(head, 0x3c)?).ok()?;
    if head.get(at..at.checked_add(4)?)? != b"PE\0\0" {
        return None;
    }
    match u16_at(head, at + 4, false)? {
        0x8664 => Some(("windows", "amd64")),
        0x014c => Some(("windows", "386")),
        0xaa64 => Some(("windows", "arm64")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_the_platform() {
        let elf = |class: u8, order: u8, system: u8, machine: [u8; 2]| {
            let mut head = b"\x7fELF".to_vec();
            head.extend([class, order, 1, system]);
            head.resize(18, 0);
            head.extend(machine);
            head
        };
        let mut pe = b"MZ".to_vec();
        pe.resize(0x3c, 0);
        pe.extend(0x80_u32.to_le_bytes());
        pe.resize(0x80, 0);
        pe.extend(b"PE\0\0\x64\x86");
        let mach_o = |cpu: u32| [0xfeed_facf_u32.to_le_bytes(), cpu.to_le_bytes()].concat();
        let mut netbsd = elf(2, 1, 0, [62, 0]);
        netbsd.extend(b"NetBSD\0");
        for (head, expected) in [
            (elf(2, 1, 0, [62, 0]), Some(("linux", "amd64"))),
            (elf(2, 1, 3, [183, 0]), Some(("linux", "arm64"))),
            (elf(1, 1, 0, [40, 0]), Some(("linux", "arm"))),
            (elf(2, 2, 0, [0, 22]), Some(("linux", "s390x"))),
            (elf(2, 1, 9, [62, 0]), Some(("freebsd", "amd64"))),
            (netbsd, Some(("netbsd", "amd64"))),
            (mach_o(0x0100_000c), Some(("darwin", "arm64"))),
            (pe, Some(("windows", "amd64"))),
            (b"#!/bin/sh\n".to_vec(), None),
            (b"MZ".to_vec(), None),
            (Vec::new(), None),
        ] {
            assert_eq!(of_head(&head), expected);
        }
        let own = of(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(own, Some(Platform::current()));
    }
}
