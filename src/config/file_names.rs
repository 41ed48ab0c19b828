//! Names of configuration and test files of Terraform and OpenTofu. If a directory has both of the same name,
//! OpenTofu reads its own file.

use std::collections::HashSet;

use addrs::program::Mode;

/// Endings of configuration files: Terraform's and OpenTofu's.
const CONFIGURATION: [(&str, &str); 2] = [(".tf", ".tofu"), (".tf.json", ".tofu.json")];

/// Endings of test files: Terraform's and OpenTofu's.
const TESTS: [(&str, &str); 2] = [(".tftest.hcl", ".tofutest.hcl"), (".tftest.json", ".tofutest.json")];

/// Returns true if this is the name of a configuration file of either tool, hidden or not.
#[must_use]
pub fn is_configuration(name: &str) -> bool {
    ends_with(name, &CONFIGURATION)
}

/// Returns true if this is the name of a test file of either tool.
#[must_use]
pub fn is_test(name: &str) -> bool {
    ends_with(name, &TESTS)
}

/// Returns true if only OpenTofu reads configuration files of this name.
#[must_use]
pub fn is_of_opentofu(name: &str) -> bool {
    CONFIGURATION.iter().any(|(_, own)| name.ends_with(own))
}

/// Returns the name of a test file in the native syntax without its ending. Any other name is returned unchanged.
#[must_use]
pub fn test_stem(name: &str) -> &str {
    let (of_terraform, of_opentofu) = TESTS[0];
    let stem = name.strip_suffix(of_terraform);
    stem.or_else(|| name.strip_suffix(of_opentofu)).unwrap_or(name)
}

fn ends_with(name: &str, endings: &[(&str, &str)]) -> bool {
    let mut endings = endings.iter();
    endings.any(|(terraform, opentofu)| name.ends_with(terraform) || name.ends_with(opentofu))
}

/// Removes the names that the mode does not read. In the mode of Monoform, which reads both kinds, Terraform's file
/// replaces OpenTofu's file of the same name; the names of the replaced files are returned, so that a warning can be
/// shown.
pub(crate) fn select(names: &mut Vec<String>, mode: Mode) -> Vec<String> {
    let all: Vec<(&str, &str)> = CONFIGURATION.into_iter().chain(TESTS).collect();
    let pair = |name: &str| {
        all.iter().find_map(|(terraform, opentofu)| {
            let own = name
                .strip_suffix(opentofu)
                .map(|stem| (format!("{stem}{terraform}"), true));
            own.or_else(|| Some((format!("{}{opentofu}", name.strip_suffix(terraform)?), false)))
        })
    };
    // Nearly all directories have no files of OpenTofu, and return here.
    if !names.iter().any(|name| pair(name).is_some_and(|(_, own)| own)) {
        return Vec::new();
    }
    let before: HashSet<String> = names.iter().cloned().collect();
    let mut contradictions = Vec::new();
    names.retain(|name| {
        let Some((other, own)) = pair(name) else {
            return true;
        };
        match mode {
            Mode::Terraform => !own,
            Mode::OpenTofu => own || !before.contains(&other),
            Mode::Monoform => {
                let contradicts = own && before.contains(&other);
                if contradicts {
                    contradictions.push(name.clone());
                }
                !contradicts
            }
        }
    });
    contradictions.sort();
    contradictions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_reads_its_own_file_of_a_pair() {
        let all = [
            "main.tf",
            "main.tofu",
            "main.tofu.json",
            "only.tofu",
            "a.tf.json",
            "a.tofu.json",
            "t.tftest.hcl",
            "t.tofutest.hcl",
            "t.tofutest.json",
            "x.tfvars",
        ];
        let read = |mode| {
            let mut names = all.map(str::to_owned).to_vec();
            let contradictions = select(&mut names, mode);
            (names, contradictions)
        };
        let (names, contradictions) = read(Mode::Terraform);
        assert_eq!(names, ["main.tf", "a.tf.json", "t.tftest.hcl", "x.tfvars"]);
        assert!(contradictions.is_empty());
        let (names, contradictions) = read(Mode::OpenTofu);
        assert_eq!(
            names,
            [
                "main.tofu",
                "main.tofu.json",
                "only.tofu",
                "a.tofu.json",
                "t.tofutest.hcl",
                "t.tofutest.json",
                "x.tfvars"
            ]
        );
        assert!(contradictions.is_empty());
        let (names, contradictions) = read(Mode::Monoform);
        assert_eq!(
            names,
            [
                "main.tf",
                "main.tofu.json",
                "only.tofu",
                "a.tf.json",
                "t.tftest.hcl",
                "t.tofutest.json",
                "x.tfvars"
            ]
        );
        assert_eq!(contradictions, ["a.tofu.json", "main.tofu", "t.tofutest.hcl"]);
    }

    #[test]
    fn stems_of_test_files_have_no_ending() {
        assert_eq!(test_stem("tests/a.tofutest.hcl"), "tests/a");
        assert_eq!(test_stem("a.tftest.hcl"), "a");
        assert!(is_test("a.tofutest.json") && !is_test("a.tofu"));
        assert!(is_configuration("a.tofu") && is_of_opentofu("a.tofu.json") && !is_of_opentofu("a.tf"));
    }
}
