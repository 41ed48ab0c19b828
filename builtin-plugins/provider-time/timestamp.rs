//! The type of attributes that hold a timestamp.

use monoform_sdk::model::ModelError;
use monoform_sdk::{Attr, CustomType, Diagnostics};

use crate::failed;
use crate::moment::{Moment, NotRfc3339};

/// A timestamp in the format of RFC 3339, with the spelling of its source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timestamp {
    text: String,
    moment: Moment,
}

impl Timestamp {
    /// Reads a timestamp outside of a configuration, such as a field of an import ID.
    pub fn parse(text: &str) -> Result<Timestamp, NotRfc3339> {
        Ok(Timestamp {
            moment: Moment::parse(text)?,
            text: text.to_owned(),
        })
    }

    /// Reads a timestamp of an import ID. The error has this summary.
    pub fn imported(text: &str, summary: &str) -> Result<Timestamp, Diagnostics> {
        Timestamp::parse(text).map_err(|error| failed(summary, format!("{error}.")))
    }

    pub fn moment(&self) -> Moment {
        self.moment
    }
}

impl From<Moment> for Timestamp {
    fn from(moment: Moment) -> Timestamp {
        Timestamp {
            text: moment.to_string(),
            moment,
        }
    }
}

impl CustomType for Timestamp {
    type Base = String;

    // In the official provider, a new spelling of `time_static.rfc3339` replaces the object.
    const SAME_IN_PLANS: bool = false;

    fn from_base(base: String) -> Result<Timestamp, ModelError> {
        Timestamp::parse(&base).map_err(|_| {
            ModelError::titled(
                "Invalid RFC3339 String Value",
                "it must be a timestamp in the format of RFC 3339, such as 2020-02-12T06:36:13Z",
            )
        })
    }

    fn to_base(&self) -> String {
        self.text.clone()
    }

    /// Returns true if the timestamps have the same instant and offset, whose zero is `Z` or `+00:00`.
    fn same(&self, other: &Timestamp) -> bool {
        self.moment == other.moment
    }
}

/// Returns the timestamp of an attribute; `None` if it is null or unknown.
pub(crate) fn given(attribute: &Attr<Timestamp>) -> Option<Moment> {
    attribute.known().map(Timestamp::moment)
}
