//! The `time` provider: timestamps stored in the state, timestamps computed from them, and pauses.
//!
//! A timestamp is read and written in RFC 3339, and keeps its offset from UTC and its spelling ([`moment`], [`timestamp`]). `time_static` keeps a
//! timestamp, and `time_offset` shifts it. The object of `time_rotating` vanishes once the shifted timestamp has
//! passed, so that everything that depends on it is created again. `time_sleep` only waits. The functions return the
//! parts of timestamps and durations.
//!
//! It implements version 0.14.0 of the official provider. Of the crates of this workspace it may use only the SDK. It differs from the
//! official provider in two points, in favor of users. An imported object has no `triggers`; in the official provider, it has an empty map,
//! which plans a replacement. And a configured `rotation_rfc3339` takes precedence over `rotation_years` and the like; in the official
//! provider, the combination fails after apply.

mod duration;
mod functions;
mod moment;
mod offset;
#[cfg(test)]
mod recorded;
mod rotating;
mod sleep;
mod static_time;
mod timestamp;

use std::collections::BTreeMap;

use monoform_sdk::schema::computed;
use monoform_sdk::{Attr, Diagnostic, Diagnostics, NeverBlocks, Plain, Provider, Result, model};

use crate::moment::Moment;

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "time";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "0.14.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.7.1", "0.7.2", "0.8.0", "0.9.0", "0.9.1",
    "0.9.2", "0.10.0", "0.11.0", "0.11.1", "0.11.2", "0.12.0", "0.12.1", "0.13.0", "0.13.1",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    NeverBlocks(Plain(|members| {
        // The official descriptions are plain text.
        members.plain();
        members.resource("time_offset", offset::TimeOffset);
        members.resource("time_rotating", rotating::TimeRotating);
        members.resource("time_sleep", sleep::TimeSleep);
        members.resource("time_static", static_time::TimeStatic);
        members.function("duration_parse", functions::duration_parse());
        members.function("rfc3339_parse", functions::rfc3339_parse());
        members.function("unix_timestamp_parse", functions::unix_timestamp_parse());
    }))
}

/// Type of the argument `triggers`.
type Triggers = Attr<BTreeMap<String, Attr<String>>>;

model! {
    /// The parts of a moment.
    pub struct Parts {
        /// The year of the resulting timestamp.
        pub year: Attr<i64> = computed(),
        /// The month of the resulting timestamp, from 1.
        pub month: Attr<i64> = computed(),
        /// The day of the month of the resulting timestamp.
        pub day: Attr<i64> = computed(),
        /// The hour of the resulting timestamp.
        pub hour: Attr<i64> = computed(),
        /// The minute of the resulting timestamp.
        pub minute: Attr<i64> = computed(),
        /// The second of the resulting timestamp.
        pub second: Attr<i64> = computed(),
        /// The resulting timestamp in seconds since 1970 in UTC.
        pub unix: Attr<i64> = computed(),
    }
}

impl From<Moment> for Parts {
    fn from(moment: Moment) -> Parts {
        Parts {
            year: moment.year().into(),
            month: moment.month().into(),
            day: moment.day().into(),
            hour: moment.hour().into(),
            minute: moment.minute().into(),
            second: moment.second().into(),
            unix: moment.unix().into(),
        }
    }
}

/// Returns an amount of time; `None` if it is null or unknown.
fn amount(attribute: &Attr<i64>) -> Option<i64> {
    attribute.known().copied()
}

/// Parses a field of an import ID; an empty field is null.
fn number_field(text: &str, summary: &str) -> Result<Attr<i64>> {
    match text {
        "" => Ok(Attr::Null),
        text => match text.parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(error) => Err(failed(
                summary,
                format!("Every field but the first must be a whole number or empty; {text:?} is not: {error}."),
            )),
        },
    }
}

fn failed(summary: &str, detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}
