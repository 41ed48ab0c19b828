//! Types for attributes that many providers have: strings with a format of their own.
//!
//! Each is a [`CustomType`](crate::CustomType) with a string as its base. A configured string in another format is an error of the
//! configuration, and a string that means the same as the prior one is no change. The string is stored as it was written, because the
//! protocol requires that for configured values.
//!
//! | type | accepts | means the same |
//! | --- | --- | --- |
//! | [`JsonText`] | JSON documents | the same document: white space, the order of members, forms of numbers |
//! | [`Timestamp`] | RFC 3339 timestamps | the same instant, in any time zone |
//! | [`GoDuration`] | durations as Go writes them, such as `1h30m` | the same length of time |
//! | [`IpAddress`] | IPv4 and IPv6 addresses | the same address: `::1` and `0:0:0:0:0:0:0:1` |
//! | [`Cidr`] | ranges of addresses, such as `10.0.0.0/8` | the same range: address and length of the prefix |
//! | [`Url`] | absolute URLs | the same URL: case of scheme and host, default port, empty path, escapes |
//!
//! ```
//! use monoform_sdk::schema::{optional, required};
//! use monoform_sdk::types::{Cidr, JsonText};
//! use monoform_sdk::{Attr, Model};
//!
//! #[derive(Clone, Default, Model)]
//! pub struct Bucket {
//!     /// The access policy, in which white space makes no difference.
//!     #[member(required())]
//!     pub policy: Attr<JsonText>,
//!     /// Address ranges of readers.
//!     #[member(optional())]
//!     pub networks: Attr<Vec<Cidr>>,
//! }
//! ```

mod duration;
mod json;
mod net;
mod text;
mod time;
mod url;

pub use self::duration::GoDuration;
pub use self::json::JsonText;
pub use self::net::{Cidr, IpAddress};
pub use self::time::Timestamp;
pub use self::url::Url;
