//! Kinds of plans: the modes that users choose from, and the refresh pass of a destroy plan.

use crate::eval::checks::FailureSeverity;
use crate::plan::Mode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanKind {
    /// The changes that make the objects match the configuration.
    Normal,
    /// The refresh pass of a destroy plan: refreshes objects and reads data sources as a normal plan does, so that the destroy plan can
    /// start from them. Nothing is imported, failed conditions are warnings, and the destroy plan checks `prevent_destroy`.
    DestroyRefresh,
    /// The destruction of all objects.
    Destroy,
    /// Only an update of the state to the refreshed objects.
    RefreshOnly,
}

impl From<Mode> for PlanKind {
    fn from(mode: Mode) -> PlanKind {
        match mode {
            Mode::Normal => PlanKind::Normal,
            Mode::Destroy => PlanKind::Destroy,
            Mode::RefreshOnly => PlanKind::RefreshOnly,
        }
    }
}

impl PlanKind {
    pub(super) fn mode(self) -> Mode {
        match self {
            PlanKind::Normal | PlanKind::DestroyRefresh => Mode::Normal,
            PlanKind::Destroy => Mode::Destroy,
            PlanKind::RefreshOnly => Mode::RefreshOnly,
        }
    }

    /// Returns true if the plan destroys all objects that it selects. The refresh pass of a destroy plan does not count.
    pub(super) fn is_destroy(self) -> bool {
        self == PlanKind::Destroy
    }

    /// Returns true if only the state is updated.
    pub(super) fn is_refresh_only(self) -> bool {
        self == PlanKind::RefreshOnly
    }

    /// Returns true if objects are compared with their configuration.
    pub(super) fn compares_with_configuration(self) -> bool {
        self.mode() == Mode::Normal
    }

    /// Returns true if `import` blocks take effect.
    pub(super) fn imports(self) -> bool {
        self == PlanKind::Normal
    }

    /// Returns true if `prevent_destroy` is an error for an object that the plan destroys.
    pub(super) fn enforces_prevent_destroy(self) -> bool {
        self != PlanKind::DestroyRefresh
    }

    /// Returns true if triggered actions are planned. A refresh pass plans none, because its changes are not applied.
    pub(super) fn plans_actions(self) -> bool {
        self != PlanKind::DestroyRefresh
    }

    /// Returns the severity of failed preconditions and postconditions.
    pub(super) fn condition_severity(self) -> FailureSeverity {
        match self {
            PlanKind::Normal | PlanKind::Destroy => FailureSeverity::Error,
            PlanKind::DestroyRefresh | PlanKind::RefreshOnly => FailureSeverity::Warning,
        }
    }
}
