//! Backend arguments that this program has and Terraform does not have.

/// Backend type and name of each argument that only this program has.
const ADDITIONS: &[(&str, &str)] = &[("pg", "layout"), ("pg", "local_copy")];

/// Returns true if an argument of a backend is part of its record and its hash. An argument that Terraform does not have is left out unless
/// it is set: Terraform would refuse a record with an unknown argument, and report a changed block because of the other hash.
pub(super) fn is_recorded(ty: &str, name: &str, is_null: bool) -> bool {
    !is_null || !ADDITIONS.contains(&(ty, name))
}
