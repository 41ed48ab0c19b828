//! Methods whose calls are sent in batches, and their names in the plugin protocol.

use crate::calls::request::Method;

/// Methods, each with its name in protocol 6 and its name in protocol 5.
const METHODS: [(Method, &str, &str); 9] = [
    (
        Method::ValidateResourceConfig,
        "ValidateResourceConfig",
        "ValidateResourceTypeConfig",
    ),
    (
        Method::ValidateDataResourceConfig,
        "ValidateDataResourceConfig",
        "ValidateDataSourceConfig",
    ),
    (
        Method::UpgradeResourceState,
        "UpgradeResourceState",
        "UpgradeResourceState",
    ),
    (
        Method::UpgradeResourceIdentity,
        "UpgradeResourceIdentity",
        "UpgradeResourceIdentity",
    ),
    (Method::ReadResource, "ReadResource", "ReadResource"),
    (Method::PlanResourceChange, "PlanResourceChange", "PlanResourceChange"),
    (
        Method::ApplyResourceChange,
        "ApplyResourceChange",
        "ApplyResourceChange",
    ),
    (Method::ReadDataSource, "ReadDataSource", "ReadDataSource"),
    (Method::CallFunction, "CallFunction", "CallFunction"),
];

impl Method {
    /// Returns the method that has this name in one of the protocols; `None` if its calls are not sent in batches.
    #[must_use]
    pub fn named(name: &str) -> Option<Method> {
        let found = METHODS.iter().find(|(_, six, five)| *six == name || *five == name);
        found.map(|(method, ..)| *method)
    }

    /// Returns the name in protocol 6; `None` for a cancellation, which is not a method of the protocol.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let found = METHODS.iter().find(|(method, ..)| *method == self);
        found.map(|(_, six, _)| *six)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_is_found_by_its_names() {
        let all: Vec<Method> = (0..).map_while(|number| Method::try_from(number).ok()).collect();
        assert_eq!(all[0], Method::Cancel);
        assert_eq!(Method::Cancel.name(), None);
        assert_eq!(all.len() - 1, METHODS.len());
        for method in &all[1..] {
            assert_eq!(method.name().and_then(Method::named), Some(*method));
        }
        assert_eq!(
            Method::named("ValidateResourceTypeConfig"),
            Some(Method::ValidateResourceConfig)
        );
        assert_eq!(Method::named("GetSchema"), None);
    }
}
