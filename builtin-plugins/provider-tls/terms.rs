//! Common code of both types of certificates: their arguments, their results, and their renewal.

#![expect(clippy::disallowed_methods, reason = "certificates are valid from now on")]

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use monoform_sdk::schema::{Attribute, optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Plan, Result, Validator};

use crate::alt_names::AltNames;
use crate::certificate::{Issuer, Template};
use crate::key::Key;
use crate::key::public::Public;
use crate::name::Name;
use crate::usage::{self, Uses};
use crate::{failed, pem};

/// Requested properties of a certificate.
pub(crate) struct Terms {
    pub hours: i64,
    pub uses: Uses,
    pub is_ca: bool,
    pub max_path_length: Option<i64>,
    pub with_key_id: bool,
}

pub(crate) struct Issued {
    pub id: String,
    pub pem: String,
    pub start: String,
    pub end: String,
}

/// Model with the arguments and results of all certificates.
pub(crate) trait Certified: Model {
    fn terms(&self) -> Terms;
    /// Returns the arguments `validity_period_hours` and `early_renewal_hours`.
    fn hours(&self) -> (&Attr<i64>, &Attr<i64>);
    /// Returns the end of the validity.
    fn end(&self) -> &Attr<String>;
    /// Returns the attribute `ready_for_renewal`.
    fn ready(&mut self) -> &mut Attr<bool>;
    /// Sets the results to the issued certificate.
    fn with(self, issued: Issued) -> Self;
}

// Defines a model whose last attributes are the arguments and results that all certificates have.
macro_rules! certificate_model {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($fields:tt)* }) => {
        monoform_sdk::model! {
            $(#[$meta])*
            $vis struct $name {
                $($fields)*
                /// For how many hours from its creation on the certificate is valid. With 0 it is replaced in every run.
                pub validity_period_hours: Attr<i64> = $crate::terms::hours(required()).requires_replace(),
                /// Key usages by their names in RFC 5280, in lower case with underscores.
                pub allowed_uses: Attr<Vec<Attr<String>>> = $crate::terms::uses(),
                /// Number of hours before its end in which a run replaces the certificate.
                pub early_renewal_hours: Attr<i64> = $crate::terms::hours(optional()).computed().default(0i64),
                /// True if the certificate may sign others.
                pub is_ca_certificate: Attr<bool> = optional().computed().default(false).requires_replace(),
                /// The maximum number of certificates between this one and the last of a chain, for one that may sign
                /// others. No limit if it is not set, or -1.
                pub max_path_length: Attr<i64> = $crate::terms::max_path_length(),
                /// True if the certificate names its key. One that may sign others always does.
                pub set_subject_key_id: Attr<bool> = optional().computed().default(false).requires_replace(),
                /// The certificate, as PEM. It ends with a line break.
                pub cert_pem: Attr<String> = computed().keep(),
                /// True if a new certificate is due, because this one has expired or the time for early renewal has come.
                pub ready_for_renewal: Attr<bool> = computed().default(false),
                /// Beginning of the validity, in the format of RFC 3339.
                pub validity_start_time: Attr<String> = computed().keep(),
                /// End of the validity, in the format of RFC 3339.
                pub validity_end_time: Attr<String> = computed().keep(),
                /// The serial number of the certificate.
                pub id: Attr<String> = computed().keep(),
            }
        }

        impl $crate::terms::Certified for $name {
            fn terms(&self) -> $crate::terms::Terms {
                $crate::terms::Terms {
                    hours: self.validity_period_hours.clone().or(0),
                    uses: $crate::terms::named(&self.allowed_uses),
                    is_ca: self.is_ca_certificate.clone().or(false),
                    max_path_length: self.max_path_length.known().copied(),
                    with_key_id: self.set_subject_key_id.clone().or(false),
                }
            }
            fn hours(&self) -> (&Attr<i64>, &Attr<i64>) {
                (&self.validity_period_hours, &self.early_renewal_hours)
            }
            fn end(&self) -> &Attr<String> {
                &self.validity_end_time
            }
            fn ready(&mut self) -> &mut Attr<bool> {
                &mut self.ready_for_renewal
            }
            fn with(mut self, issued: $crate::terms::Issued) -> $name {
                if self.max_path_length.is_unknown() {
                    self.max_path_length = Attr::Null;
                }
                $name {
                    id: issued.id.into(),
                    cert_pem: issued.pem.into(),
                    validity_start_time: issued.start.into(),
                    validity_end_time: issued.end.into(),
                    ready_for_renewal: $crate::terms::ready(&self),
                    ..self
                }
            }
        }
    };
}
pub(crate) use certificate_model;

/// Returns the attribute for a number of hours.
pub(crate) fn hours(attribute: Attribute) -> Attribute {
    attribute.validate(Validator::AtLeast(0))
}

pub(crate) fn uses() -> Attribute {
    required()
        .validate(Validator::each(Validator::OneOf(usage::NAMES)))
        .requires_replace()
}

pub(crate) fn named(list: &Attr<Vec<Attr<String>>>) -> Uses {
    Uses::named(list.known().into_iter().flatten().map(Attr::text))
}

pub(crate) fn max_path_length() -> Attribute {
    optional()
        .computed()
        .keep()
        .requires_replace()
        .validate(Validator::AtLeast(-1))
}

/// Subject of a certificate with its public key, and the issuer with the key that signs.
pub(crate) struct Parties<'a> {
    pub subject: Name,
    pub names: AltNames,
    pub public: Public,
    /// Returns the issuer for the template of the certificate.
    pub issuer: &'a dyn Fn(&Template) -> Result<Issuer>,
    pub key: &'a Key,
}

pub(crate) fn issue(terms: Terms, parties: Parties<'_>) -> Result<Issued> {
    if terms.is_ca && parties.subject.is_empty() {
        return Err(failed(
            "Invalid Certificate Subject",
            "A certificate authority needs a subject: set one of its arguments, for example common_name.",
        ));
    }
    let max_path_length = match terms.max_path_length {
        // A path length of 0 is also allowed for a certificate that is not a CA certificate.
        Some(length) if length > 0 && !terms.is_ca => {
            return Err(failed(
                "Failed to create certificate",
                "Only CAs are allowed to specify MaxPathLen: remove max_path_length, or set is_ca_certificate.",
            ));
        }
        Some(length) => u64::try_from(length).ok(),
        None => None,
    };
    let start = Timestamp::now();
    let end = start
        .checked_add(SignedDuration::from_hours(terms.hours))
        .map_err(|_| {
            failed(
                "Failed to create certificate",
                format!(
                    "A certificate that is valid for {} hours would end after the year 9999.",
                    terms.hours
                ),
            )
        })?;
    let template = Template {
        subject: parties.subject,
        names: parties.names,
        public: parties.public,
        not_before: start,
        not_after: end,
        uses: terms.uses,
        is_ca: terms.is_ca,
        max_path_length,
        with_key_id: terms.with_key_id,
    };
    let issuer = (parties.issuer)(&template)?;
    let (der, serial) = template
        .sign(&issuer, parties.key)
        .map_err(|e| failed("Failed to create certificate", format!("{e}.")))?;
    Ok(Issued {
        id: serial.to_string(),
        pem: pem::encode(pem::CERTIFICATE, der),
        start: local(start),
        end: local(end),
    })
}

/// Formats a timestamp in RFC 3339, at the offset of the machine's time zone.
fn local(moment: Timestamp) -> String {
    let offset = TimeZone::system().to_offset(moment);
    if offset.is_zero() {
        moment.to_string()
    } else {
        moment.display_with_offset(offset).to_string()
    }
}

/// Returns the value of `ready_for_renewal` for a new certificate; unknown if an argument that decides it is unknown. The official provider
/// treats an unknown argument as 0, which causes an error once the argument is known.
pub(crate) fn ready<M: Certified>(model: &M) -> Attr<bool> {
    match model.hours() {
        (Attr::Known(0), _) => true.into(),
        (Attr::Known(hours), Attr::Known(early)) => (early >= hours).into(),
        _ => Attr::Unknown,
    }
}

/// Returns true if the certificate is due for renewal.
fn is_due<M: Certified>(model: &M, now: Timestamp) -> Result<bool> {
    let (Some(end), (_, Attr::Known(early))) = (model.end().as_str(), model.hours()) else {
        return Ok(false);
    };
    let end: Timestamp = end.parse().map_err(|e| -> Diagnostics {
        Diagnostic::error(
            format!("Failed to parse data from string: {end}"),
            format!("The state does not hold a moment there: {e}."),
        )
        .at_attribute("validity_end_time")
        .into()
    })?;
    // If the beginning of the early renewal is before the minimum timestamp, it has passed.
    Ok(end
        .checked_sub(SignedDuration::from_hours(*early))
        .map_or(true, |renewal| renewal <= now))
}

/// Completes a plan. A certificate that is due for renewal is replaced.
pub(crate) fn plan<M: Certified>(plan: &mut Plan<'_, M>) -> Result<()> {
    let mut planned = plan.planned()?;
    *planned.ready() = ready(&planned);
    if is_due(&planned, Timestamp::now())? {
        *planned.ready() = Attr::Unknown;
        plan.replace("ready_for_renewal");
    }
    plan.set(&planned);
    Ok(())
}

/// Refreshes the object. Only `ready_for_renewal` can change.
pub(crate) fn read<M: Certified>(mut state: M) -> Result<Option<M>> {
    if is_due(&state, Timestamp::now())? {
        *state.ready() = true.into();
    }
    Ok(Some(state))
}
