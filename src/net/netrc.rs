//! `.netrc`: names and passwords for web servers.

use files::Environment;
pub use http::Login;
use std::collections::BTreeMap;
use std::path::PathBuf;
use system::Os;

/// The logins of a file by machine, and its default login.
#[derive(Clone, Default)]
pub struct Netrc {
    machines: BTreeMap<String, Login>,
    default: Option<Login>,
}

impl Netrc {
    /// Reads the file of `NETRC`, or `.netrc` in the home directory. A missing or unreadable file is empty.
    #[must_use]
    pub fn load(environment: &Environment) -> Netrc {
        let path = match environment.get("NETRC") {
            Some(path) => Some(PathBuf::from(path)),
            None => environment
                .home()
                .map(|home| home.join(if Os::CURRENT == Os::Windows { "_netrc" } else { ".netrc" })),
        };
        path.and_then(|p| std::fs::read_to_string(p).ok())
            .map(|text| Netrc::parse(&text))
            .unwrap_or_default()
    }

    /// Parses the text of a file. Unknown words are ignored, as in other programs.
    #[must_use]
    pub fn parse(text: &str) -> Netrc {
        let mut out = Netrc::default();
        let mut machine: Option<String> = None;
        let mut login = Login::default();
        let mut open = false;
        let mut in_macro = false;
        let mut finish = |machine: Option<String>, login: Login| match machine {
            // If a machine has several entries, the first one counts.
            Some(name) => {
                out.machines.entry(name).or_insert(login);
            }
            None => {
                out.default.get_or_insert(login);
            }
        };
        for line in text.lines() {
            // A macro ends at an empty line.
            if in_macro {
                in_macro = !line.trim().is_empty();
                continue;
            }
            let mut words = line.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    "machine" | "default" => {
                        if open {
                            finish(machine.take(), std::mem::take(&mut login));
                        }
                        open = true;
                        machine = if word == "machine" {
                            Some(words.next().unwrap_or_default().to_lowercase())
                        } else {
                            None
                        };
                    }
                    "login" => words.next().unwrap_or_default().clone_into(&mut login.name),
                    "password" => words.next().unwrap_or_default().clone_into(&mut login.password),
                    "account" => {
                        words.next();
                    }
                    "macdef" => {
                        in_macro = true;
                        break;
                    }
                    word if word.starts_with('#') => break,
                    _ => {}
                }
            }
        }
        if open {
            finish(machine, login);
        }
        out
    }

    #[must_use]
    pub fn login(&self, machine: &str) -> Option<&Login> {
        self.machines.get(&machine.to_lowercase()).or(self.default.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_machine() {
        let netrc = Netrc::parse(
            "# comment\nmachine a.example login u password p\nmacdef x\n machine no\n\nmachine b.example\n  login v\n  account \
             w\n  password q\nmachine a.example login later password later\n",
        );
        let login = |machine: &str| netrc.login(machine).map(|l| format!("{}:{}", l.name, l.password));
        assert_eq!(login("A.example").as_deref(), Some("u:p"));
        assert_eq!(login("b.example").as_deref(), Some("v:q"));
        assert_eq!(login("no"), None);
        assert!(Netrc::parse("default login d password e").login("any").is_some());
        assert!(Netrc::parse("machine").login("x").is_none());
    }
}
