//! Arguments of backends that Terraform lacks.

/// Arguments that only this program has, with their backends.
const ADDITIONS: &[(&str, &str)] = &[("pg", "layout")];

/// Returns true if an argument of a backend is in its records and its hash. One that only this program has is left out unless it
/// is set: Terraform refuses a record with an argument that it does not know, and would find the block changed.
pub(super) fn is_recorded(ty: &str, name: &str, is_null: bool) -> bool {
    !is_null || !ADDITIONS.contains(&(ty, name))
}
