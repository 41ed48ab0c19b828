//! Families of systems, and their rules for programs and directories of the user, as pure functions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Interrupt;

/// A family of systems. Its rules are pure functions, so that those of every family can be tested on every system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux and FreeBSD.
    Unix,
    MacOs,
    Windows,
}

impl Os {
    /// The family of the system that this program was built for.
    pub const CURRENT: Os = if cfg!(windows) {
        Os::Windows
    } else if cfg!(target_os = "macos") {
        Os::MacOs
    } else {
        Os::Unix
    };

    /// All families.
    pub const ALL: [Os; 3] = [Os::Unix, Os::MacOs, Os::Windows];

    /// Returns the program that runs a command line, with the argument that precedes it.
    #[must_use]
    pub fn shell(self) -> [&'static str; 2] {
        match self {
            Os::Windows => ["cmd", "/C"],
            _ => ["/bin/sh", "-c"],
        }
    }

    /// Returns the path of an executable: on Windows with `.exe` appended, even to a name that has another extension.
    #[must_use]
    pub fn executable(self, path: &Path) -> PathBuf {
        match self {
            Os::Windows => {
                // `with_extension` would change `plugin_v3.2.4` to `plugin_v3.2`.
                let mut name = path.as_os_str().to_owned();
                name.push(".exe");
                name.into()
            }
            _ => path.to_owned(),
        }
    }

    /// Returns the name of a program without the extension of executables on Windows.
    #[must_use]
    pub fn program_name(self, name: &str) -> &str {
        let at = name.len().saturating_sub(4);
        match (self, name.get(at..)) {
            (Os::Windows, Some(ending)) if at > 0 && ending.eq_ignore_ascii_case(".exe") => {
                name.get(..at).unwrap_or(name)
            }
            _ => name,
        }
    }

    /// Returns the names under which a program is searched. On Windows, `extensions` (`PATHEXT`) lists the extensions that
    /// are tried after a name without one.
    #[must_use]
    pub fn program_names(self, name: &str, extensions: Option<&str>) -> Vec<String> {
        if self != Os::Windows {
            return vec![name.to_owned()];
        }
        let extensions = extensions.filter(|text| !text.is_empty());
        let extensions = extensions.unwrap_or(".COM;.EXE;.BAT;.CMD").split(';');
        let extensions: Vec<String> = extensions
            .filter(|extension| !extension.is_empty())
            .map(|extension| match extension.starts_with('.') {
                true => extension.to_ascii_lowercase(),
                false => format!(".{}", extension.to_ascii_lowercase()),
            })
            .collect();
        let lower = name.to_ascii_lowercase();
        // As in Go's library: a name with one of these extensions is first tried unchanged.
        let whole = extensions.iter().any(|extension| lower.ends_with(extension));
        let whole = whole.then(|| name.to_owned());
        let longer = extensions.iter().map(|extension| format!("{name}{extension}"));
        whole.into_iter().chain(longer).collect()
    }

    /// Returns true if the text is the path of a program, and not a name to be searched.
    #[must_use]
    pub fn is_path(self, name: &str) -> bool {
        name.contains('/') || self == Os::Windows && name.contains(['\\', ':'])
    }

    /// Returns true if two names mean the same environment variable: Windows ignores case.
    #[must_use]
    pub fn same_variable(self, one: &str, other: &str) -> bool {
        match self {
            Os::Windows => one.eq_ignore_ascii_case(other),
            _ => one == other,
        }
    }

    /// Returns the time after a request to end at which the system ends the process itself; `None` if it does not.
    #[must_use]
    pub fn limit_after(self, request: Interrupt) -> Option<Duration> {
        match (self, request) {
            // Windows ends the process soon after a console is closed or a session ends.
            (Os::Windows, Interrupt::Hangup | Interrupt::Terminate) => Some(Duration::from_secs(5)),
            _ => None,
        }
    }

    /// Returns the name of the environment variable that holds the user's home directory.
    #[must_use]
    pub fn home_variable(self) -> &'static str {
        match self {
            Os::Windows => "USERPROFILE",
            _ => "HOME",
        }
    }

    /// Returns programs that open an address in the user's browser, with their arguments before the address.
    #[must_use]
    pub fn openers(self) -> &'static [&'static [&'static str]] {
        match self {
            Os::Unix => &[&["xdg-open"], &["wslview"]],
            Os::MacOs => &[&["open"]],
            Os::Windows => &[&["rundll32", "url.dll,FileProtocolHandler"]],
        }
    }

    /// Returns the paths at which a tool looks for the user's CLI configuration; `None` if the home directory is needed and not known.
    #[must_use]
    pub fn cli_configuration(self, tool: Tool, surroundings: Surroundings<'_>) -> Option<CliPaths> {
        let Surroundings { home, variable, exists } = surroundings;
        let opentofu = tool == Tool::OpenTofu;
        let (base, names, directory) = match self {
            // `APPDATA` is usually set. Otherwise, its standard location below the home directory is used.
            Os::Windows => (
                application_data(home, variable)?,
                ["tofu.rc", "terraform.rc"],
                "terraform.d",
            ),
            _ => (home?.to_owned(), [".tofurc", ".terraformrc"], ".terraform.d"),
        };
        let [own, terraform] = names.map(|name| base.join(name));
        let directory = base.join(directory);
        let file = match opentofu && (exists(&own) || !exists(&terraform)) {
            true => own,
            false => terraform,
        };
        let mut paths = CliPaths {
            plugins: vec![directory.clone()],
            file,
            directory,
        };
        if opentofu && self != Os::Windows {
            // OpenTofu uses the directories of the XDG specification for paths that do not exist in the home directory.
            if let Some(config) = variable("XDG_CONFIG_HOME") {
                let config = Path::new(&config).join("opentofu");
                if !exists(&paths.file) {
                    paths.file = config.join("tofurc");
                }
                if !exists(&paths.directory) {
                    paths.directory = config;
                }
            }
            let data = variable("XDG_DATA_HOME");
            paths.plugins.extend(data.map(|data| Path::new(&data).join("opentofu")));
        }
        for directory in &mut paths.plugins {
            directory.push("plugins");
        }
        Some(paths)
    }

    /// Returns the directories for plugins below the system's directories for application data, as in Terraform.
    #[must_use]
    pub fn plugin_directories(self, home: Option<&Path>, variable: Variables<'_>) -> Vec<PathBuf> {
        match self {
            Os::MacOs => {
                let below = "Library/Application Support/io.terraform/plugins";
                let own = home.map(|home| home.join(below));
                own.into_iter().chain([Path::new("/").join(below)]).collect()
            }
            Os::Windows => {
                let own = application_data(home, variable);
                let own = own.map(|data| data.join("HashiCorp").join("Terraform").join("plugins"));
                own.into_iter().collect()
            }
            Os::Unix => {
                // The XDG specification requires that relative paths are ignored.
                let absolute = |path: &str| path.starts_with('/').then(|| PathBuf::from(path));
                let own = variable("XDG_DATA_HOME").and_then(|path| absolute(&path));
                let own = own.or_else(|| Some(home?.join(".local/share")));
                let shared = variable("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".to_owned());
                let all = own.into_iter().chain(shared.split(':').filter_map(absolute));
                all.map(|dir| dir.join("terraform/plugins")).collect()
            }
        }
    }

    /// Returns true if a file name is not usable on Windows: it names a device (`CON`) or a stream (`a:b`), contains a character that is
    /// refused, or ends with a dot or blank, which Windows drops.
    #[must_use]
    pub fn is_reserved_name(self, name: &str) -> bool {
        if self != Os::Windows || matches!(name, "." | "..") {
            return false;
        }
        let has_refused = |c: char| c < ' ' || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\');
        if name.chars().any(has_refused) || name.ends_with(['.', ' ']) {
            return true;
        }
        // The names of devices are reserved with any extension, and with blanks before it.
        let base = name.split('.').next().unwrap_or_default().trim_end_matches(' ');
        let base = base.to_uppercase();
        let numbered = |prefix: &str| {
            let rest = base.strip_prefix(prefix);
            rest.is_some_and(|rest| {
                let mut chars = rest.chars();
                chars.next().is_some_and(|c| matches!(c, '1'..='9' | '¹' | '²' | '³')) && chars.next().is_none()
            })
        };
        matches!(&*base, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || numbered("COM") || numbered("LPT")
    }
}

/// Tool whose paths are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Terraform,
    /// OpenTofu's own paths, or Terraform's if only Terraform's files exist.
    OpenTofu,
}

/// User's home directory, environment variables and files, as far as paths depend on them.
#[derive(Clone, Copy)]
pub struct Surroundings<'s> {
    pub home: Option<&'s Path>,
    pub variable: Variables<'s>,
    /// Returns true if a file or directory exists.
    pub exists: &'s dyn Fn(&Path) -> bool,
}

/// Paths of the user's CLI configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliPaths {
    pub file: PathBuf,
    /// Directory of further files and of stored credentials.
    pub directory: PathBuf,
    /// Directories of plugins.
    pub plugins: Vec<PathBuf>,
}

/// Lookup of environment variables; `None` for those that are unset or empty.
pub type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Returns the user's directory for application data on Windows; `None` if neither `APPDATA` nor the home directory is known.
fn application_data(home: Option<&Path>, variable: Variables<'_>) -> Option<PathBuf> {
    let set = variable("APPDATA").map(PathBuf::from);
    set.or_else(|| Some(home?.join("AppData").join("Roaming")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stay_in_the_names_of_executables() {
        let name = Path::new("terraform-provider-null_v3.2.4");
        assert_eq!(
            Os::Windows.executable(name),
            Path::new("terraform-provider-null_v3.2.4.exe")
        );
        assert_eq!(Os::Unix.executable(name), name);
        assert_eq!(Os::Windows.program_name("x_v3.2.4.EXE"), "x_v3.2.4");
        assert_eq!(Os::Windows.program_name(".exe"), ".exe");
        assert_eq!(Os::Unix.program_name("x.exe"), "x.exe");
    }

    #[test]
    fn programs_have_the_extensions_of_the_environment_on_windows() {
        assert_eq!(Os::Unix.program_names("git", Some(".EXE")), ["git"]);
        assert_eq!(
            Os::Windows.program_names("git", Some(".COM;.EXE;;PS1")),
            ["git.com", "git.exe", "git.ps1"]
        );
        assert_eq!(
            Os::Windows.program_names("git.Exe", None),
            ["git.Exe", "git.Exe.com", "git.Exe.exe", "git.Exe.bat", "git.Exe.cmd"]
        );
        assert!(Os::Windows.is_path(r"tools\git") && !Os::Unix.is_path(r"tools\git"));
    }

    #[test]
    fn process_is_ended_after_its_console_on_windows_only() {
        let seconds = |os: Os, request| os.limit_after(request).map(|limit| limit.as_secs());
        assert_eq!(seconds(Os::Windows, Interrupt::Hangup), Some(5));
        assert_eq!(seconds(Os::Windows, Interrupt::Terminate), Some(5));
        assert_eq!(seconds(Os::Windows, Interrupt::Interrupt), None);
        assert_eq!(seconds(Os::Unix, Interrupt::Hangup), None);
    }

    #[test]
    fn directories_of_the_user_are_those_of_terraform_on_every_system() {
        let variable = |name: &str| match name {
            "APPDATA" => Some("/data".to_owned()),
            "XDG_DATA_DIRS" => Some("/a:relative:/b".to_owned()),
            _ => None,
        };
        let home = Some(Path::new("/home"));
        let files = |os: Os, home| {
            let surroundings = Surroundings {
                home,
                variable: &variable,
                exists: &|_| false,
            };
            let paths = os.cli_configuration(Tool::Terraform, surroundings)?;
            assert_eq!(paths.plugins, [paths.directory.join("plugins")]);
            Some(paths.file)
        };
        assert_eq!(files(Os::Windows, home), Some("/data/terraform.rc".into()));
        assert_eq!(files(Os::MacOs, home), Some("/home/.terraformrc".into()));
        assert_eq!(files(Os::Unix, None), None);
        let plugins = |os: Os| os.plugin_directories(home, &variable);
        assert_eq!(
            plugins(Os::Unix),
            [
                "/home/.local/share/terraform/plugins",
                "/a/terraform/plugins",
                "/b/terraform/plugins"
            ]
            .map(PathBuf::from)
        );
        assert_eq!(
            plugins(Os::Windows),
            [PathBuf::from("/data/HashiCorp/Terraform/plugins")]
        );
        assert_eq!(
            plugins(Os::MacOs).last(),
            Some(&"/Library/Application Support/io.terraform/plugins".into())
        );
    }

    #[test]
    fn opentofu_prefers_its_own_files_and_falls_back_to_those_of_terraform() {
        let xdg = |name: &str| match name {
            "APPDATA" => Some("/data".to_owned()),
            "XDG_CONFIG_HOME" => Some("/config".to_owned()),
            "XDG_DATA_HOME" => Some("/share".to_owned()),
            _ => None,
        };
        let no_xdg = |name: &str| xdg(name).filter(|_| name == "APPDATA");
        let paths = |os: Os, variable: Variables<'_>, existing: &[&str]| {
            let surroundings = Surroundings {
                home: Some(Path::new("/home")),
                variable,
                exists: &|path| existing.iter().any(|known| Path::new(known) == path),
            };
            let paths = os.cli_configuration(Tool::OpenTofu, surroundings).unwrap();
            let text = |path: PathBuf| path.to_str().unwrap().replace('\\', "/");
            (text(paths.file), text(paths.directory))
        };
        let (own, terraform, directory) = ("/home/.tofurc", "/home/.terraformrc", "/home/.terraform.d");
        for (variable, existing, file, further) in [
            (
                &xdg as Variables<'_>,
                &[][..],
                "/config/opentofu/tofurc",
                "/config/opentofu",
            ),
            (&xdg, &[directory][..], "/config/opentofu/tofurc", directory),
            (&xdg, &[terraform][..], terraform, "/config/opentofu"),
            (&xdg, &[own, terraform][..], own, "/config/opentofu"),
            (&no_xdg, &[][..], own, directory),
            (&no_xdg, &[terraform][..], terraform, directory),
        ] {
            for os in [Os::Unix, Os::MacOs] {
                assert_eq!(paths(os, variable, existing), (file.to_owned(), further.to_owned()));
            }
        }
        let windows = |existing: &[&str]| paths(Os::Windows, &xdg, existing).0;
        assert_eq!(windows(&[]), "/data/tofu.rc");
        assert_eq!(windows(&["/data/terraform.rc"]), "/data/terraform.rc");
        let surroundings = Surroundings {
            home: Some(Path::new("/home")),
            variable: &xdg,
            exists: &|_| false,
        };
        let plugins = Os::Unix
            .cli_configuration(Tool::OpenTofu, surroundings)
            .unwrap()
            .plugins;
        assert_eq!(
            plugins,
            ["/home/.terraform.d/plugins", "/share/opentofu/plugins"].map(PathBuf::from)
        );
    }

    #[test]
    fn names_of_devices_and_streams_are_reserved_on_windows_only() {
        for name in [
            "CON", "aux.tf", "nul .txt", "com1", "LPT9.x.y", "COM²", "a:b", "a.", "a ", r"a\b", "what?", "\u{1}",
        ] {
            assert!(Os::Windows.is_reserved_name(name), "{name}");
            assert!(!Os::Unix.is_reserved_name(name), "{name}");
        }
        for name in [
            "main.tf",
            "console",
            "com",
            "com10",
            "lpt0",
            ".terraform",
            "..",
            "a b.c",
        ] {
            assert!(!Os::Windows.is_reserved_name(name), "{name}");
        }
    }
}
