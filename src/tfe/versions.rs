//! Compatibility of versions with a workspace whose state is to be changed.

use versions::{Constraints, Version};

use crate::Workspace;

/// Compatibility of a version with the version of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// The versions are compatible, or the workspace has no version.
    Compatible,
    /// The versions are not compatible. Contains the version constraint of the workspace.
    Incompatible(String),
    /// The version or constraint of the workspace cannot be parsed.
    Unknown,
}

/// Decides if this version may change the state of a workspace. If operations run on the server, the workspace's
/// version is relevant: it could not read a state of a later version.
#[must_use]
pub fn compatible(workspace: &Workspace, own: &str) -> Compatibility {
    let wanted = &*workspace.terraform_version;
    if wanted == "latest" || wanted.is_empty() || workspace.is_local() {
        return Compatibility::Compatible;
    }
    let constraint = match Version::parse(wanted) {
        // States of 0.14 to 1.2 have one format. After that, the format is the same in all releases of a minor
        // version.
        Ok(version) if !version.is_prerelease() => match version.numbers() {
            [0, (14..), ..] | [1, 0..3, ..] => ">= 0.14.0, < 1.3.0".to_owned(),
            [major @ (1..), minor, ..] => format!("~> {major}.{minor}.0"),
            _ => wanted.to_owned(),
        },
        _ => wanted.to_owned(),
    };
    let (Ok(constraints), Ok(own)) = (Constraints::parse(&constraint), Version::parse(own)) else {
        return Compatibility::Unknown;
    };
    match constraints.allows(&own) {
        true => Compatibility::Compatible,
        false => Compatibility::Incompatible(constraint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_write_states_for_each_other() {
        let of = |wanted: &str, mode: &str| {
            let workspace = Workspace {
                terraform_version: wanted.to_owned(),
                execution_mode: mode.to_owned(),
                ..Workspace::default()
            };
            compatible(&workspace, "1.11.4")
        };
        for wanted in ["latest", "1.11.0", "1.11.9", "~> 1.11", ">= 1.0"] {
            assert_eq!(of(wanted, "remote"), Compatibility::Compatible, "{wanted}");
        }
        for (wanted, constraint) in [
            ("1.10.1", "~> 1.10.0"),
            ("1.12.0", "~> 1.12.0"),
            ("1.2.3", ">= 0.14.0, < 1.3.0"),
            ("1.12.0-rc1", "1.12.0-rc1"),
        ] {
            let expected = Compatibility::Incompatible(constraint.to_owned());
            assert_eq!(of(wanted, "remote"), expected, "{wanted}");
            assert_eq!(of(wanted, "local"), Compatibility::Compatible);
        }
        assert_eq!(of("soon", "agent"), Compatibility::Unknown);
    }
}
