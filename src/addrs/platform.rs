//! Operating system and processor architecture with Go's names: `linux_amd64`.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Platform {
    pub os: String,
    pub arch: String,
}

impl Platform {
    /// Returns the platform of this executable.
    #[must_use]
    pub fn current() -> Platform {
        // Registries and plugin caches use Go's names, which differ from Rust's for these systems and architectures.
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            other => other,
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "x86" => "386",
            "aarch64" => "arm64",
            // Rust uses one name for both byte orders of this architecture.
            "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
            "powerpc64" => "ppc64",
            "loongarch64" => "loong64",
            other => other,
        };
        Platform {
            os: os.to_owned(),
            arch: arch.to_owned(),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.os, self.arch)
    }
}

impl FromStr for Platform {
    type Err = ();

    fn from_str(text: &str) -> Result<Platform, ()> {
        let word = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_alphanumeric());
        match text.split_once('_') {
            Some((os, arch)) if word(os) && word(arch) => Ok(Platform {
                os: os.to_owned(),
                arch: arch.to_owned(),
            }),
            _ => Err(()),
        }
    }
}
