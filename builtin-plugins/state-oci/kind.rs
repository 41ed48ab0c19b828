//! Authentication methods.

/// Authentication method.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ApiKey,
    InstancePrincipal,
    InstancePrincipalWithCerts,
    SecurityToken,
    ResourcePrincipal,
    WorkloadIdentity,
}

const KINDS: [(&str, Kind); 6] = [
    ("ApiKey", Kind::ApiKey),
    ("InstancePrincipal", Kind::InstancePrincipal),
    ("InstancePrincipalWithCerts", Kind::InstancePrincipalWithCerts),
    ("SecurityToken", Kind::SecurityToken),
    ("ResourcePrincipal", Kind::ResourcePrincipal),
    ("OKEWorkloadIdentity", Kind::WorkloadIdentity),
];

impl Kind {
    /// Returns the method with this name, ignoring case. An empty name means the default.
    pub fn named(name: &str) -> Option<Kind> {
        if name.is_empty() {
            return Some(Kind::ApiKey);
        }
        let found = KINDS.iter().find(|(one, _)| one.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| *kind)
    }

    /// Returns all names, for messages.
    pub fn names() -> String {
        KINDS.map(|(name, _)| format!("'{name}'")).join(" or ")
    }
}
