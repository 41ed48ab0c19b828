//! Record sets as managed objects: all records with the same name and type.
//!
//! An object is created or changed with one update message, and then queried; the server's answer becomes the state. If the server returns
//! the same data in another form, the form of the configuration is kept.

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use monoform_sdk::{
    Context, Cty, Diagnostic, Diagnostics, Model, Plan, Resource, Result, Schema, Validator, async_trait,
};

use crate::exchange::{Client, Failure};
use crate::text::{self, NameError, TextError};

/// Model of a record set, with access to the attributes that all record sets have.
pub(crate) trait RecordModel: Model {
    /// Returns the zone, the name below it (empty for the zone itself), and the TTL.
    fn place(&self) -> Owner<'_>;
    /// Sets the attributes by which the set is found: ID, zone and name.
    fn locate(&mut self, id: String, zone: String, name: Option<String>);
    fn set_id(&mut self, id: String);
    fn set_ttl(&mut self, ttl: i64);
}

/// Owner name, zone and TTL of a record set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'m> {
    pub zone: &'m str,
    pub name: &'m str,
    pub ttl: i64,
}

impl Owner<'_> {
    /// Returns the fully qualified name as text.
    fn text(&self) -> String {
        match (self.name, self.zone) {
            ("", zone) => zone.to_owned(),
            (name, ".") => format!("{name}."),
            (name, zone) => format!("{name}.{zone}"),
        }
    }

    fn name(&self) -> Result<Name> {
        Ok(text::name(&self.text()).map_err(unreadable)?)
    }

    fn record(&self, data: RData) -> Result<Record> {
        let ttl = u32::try_from(self.ttl)
            .ok()
            .filter(|ttl| *ttl <= i32::MAX.unsigned_abs());
        let ttl =
            ttl.ok_or_else(|| unreadable(format!("ttl is a number from 0 to {}, but is {}", i32::MAX, self.ttl)))?;
        Ok(Record::from_rdata(self.name()?, ttl, data))
    }
}

/// A type of records: its model, and its conversions to and from record data.
pub(crate) trait Kind: Send + Sync + 'static {
    type Model: RecordModel + PartialEq;
    /// Data of one record in the model.
    type Element: Clone + PartialEq + Send + Sync;

    const TYPE: RecordType;
    /// Description of the resource type in the schema.
    const DESCRIPTION: &'static str;
    /// True if the official resource type was written with the old Go SDK; see [`Resource::LENIENT`].
    const LENIENT: bool = false;
    /// True if the set can have one record only.
    const SINGLE: bool = false;

    fn elements(model: &Self::Model) -> Vec<Self::Element>;
    /// Replaces the elements of the model.
    fn set_elements(model: &mut Self::Model, elements: Vec<Self::Element>);
    /// Converts an element to record data; `None` if a part is unknown.
    fn read(element: &Self::Element) -> Option<std::result::Result<RData, TextError>>;
    /// Converts record data to an element; `None` if the record is of another type.
    fn write(data: &RData) -> Option<Self::Element>;
}

/// Resource type for a type of records.
pub(crate) struct Records<K>(pub K);

fn unreadable(reason: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error("Error reading DNS record", format!("{reason}."))
}

fn failed(doing: &str, reason: impl std::fmt::Display) -> Diagnostics {
    Diagnostic::error(format!("Error {doing} DNS record:"), format!("{reason}.")).into()
}

/// Returns the error for a response code other than success.
fn refused(doing: &str, code: ResponseCode) -> Diagnostics {
    let (name, hint) = match code {
        ResponseCode::FormErr => (
            "FORMERR",
            "the server does not understand the message; does it take dynamic updates?",
        ),
        ResponseCode::ServFail => ("SERVFAIL", "the server failed; its log should say why"),
        ResponseCode::NXDomain => ("NXDOMAIN", "there is no such name"),
        ResponseCode::NotImp => ("NOTIMP", "the server does not take dynamic updates"),
        ResponseCode::Refused => (
            "REFUSED",
            "the server does not allow this to this client or with this key",
        ),
        ResponseCode::NotAuth => (
            "NOTAUTH",
            "the server is not responsible for this zone, or does not accept the key",
        ),
        ResponseCode::NotZone => ("NOTZONE", "the name is not in the zone"),
        ResponseCode::YXDomain | ResponseCode::YXRRSet | ResponseCode::NXRRSet => {
            ("precondition", "what is there already is not what the server expected")
        }
        _ => ("error", "the server does not say more"),
    };
    failed(
        doing,
        format_args!("the server answered {} ({name}): {hint}", u16::from(code)),
    )
}

async fn update(client: &Client, doing: &str, zone: &str, records: Vec<Record>) -> Result<()> {
    let mut message = Message::new(Message::query().metadata.id, MessageType::Query, OpCode::Update);
    message.add_query(Query::query(text::name(zone).map_err(unreadable)?, RecordType::SOA));
    message.add_authorities(records);
    let answer = client.exchange(message).await.map_err(|e| failed(doing, e))?;
    match answer.metadata.response_code {
        ResponseCode::NoError => Ok(()),
        code => Err(refused(doing, code)),
    }
}

/// Queries the records of a name.
async fn ask(client: &Client, name: Name, kind: RecordType) -> std::result::Result<Message, Failure> {
    let mut message = Message::query();
    message.metadata.recursion_desired = client.is_recursive();
    message.add_query(Query::query(name, kind));
    client.exchange(message).await
}

/// Returns true if two records are equal. How a TXT value is split into strings does not matter.
fn same(one: &RData, other: &RData) -> bool {
    match (one, other) {
        (RData::TXT(one), RData::TXT(other)) => one.txt_data.iter().flatten().eq(other.txt_data.iter().flatten()),
        _ => one == other,
    }
}

/// Returns the elements without unknown parts, each with its record data.
fn read_all<K: Kind>(model: &K::Model) -> Result<Vec<(K::Element, RData)>> {
    let read = |element: K::Element| {
        let data = K::read(&element)?;
        Some(data.map(|data| (element, data)).map_err(|e| unreadable(e).into()))
    };
    K::elements(model).into_iter().filter_map(read).collect()
}

impl<K: Kind> Records<K> {
    fn client(&self, cx: &Context<Client>) -> Result<std::sync::Arc<Client>> {
        let client = cx.client()?;
        // As in the official provider, resource types of the old SDK have an error of their own for a missing server.
        if K::LENIENT && !client.has_server() {
            return Err(Diagnostic::error(
                "update server is not set",
                "The provider's configuration has no update block that says where updates go, and the environment variable \
                 DNS_UPDATE_SERVER is not set.",
            )
            .into());
        }
        Ok(client)
    }

    /// Reads the set from the server; `None` if there is no record.
    async fn look(&self, client: &Client, model: &K::Model) -> Result<Option<K::Model>> {
        let name = model.place().name()?;
        let answer = ask(client, name.clone(), K::TYPE)
            .await
            .map_err(|e| failed("querying", e))?;
        match answer.metadata.response_code {
            ResponseCode::NoError => {}
            ResponseCode::NXDomain => return Ok(None),
            code => return Err(refused("querying", code)),
        }
        // If the server delegates the zone, the NS records are in the authority section of its answer.
        let mut records: Vec<&Record> = Vec::new();
        if K::TYPE == RecordType::NS {
            let named = answer
                .authorities
                .iter()
                .filter(|r| r.record_type() == RecordType::NS && r.name == name);
            records.extend(named);
        }
        if records.is_empty() {
            records.extend(&answer.answers);
        }
        let Some(ttl) = records.iter().map(|r| r.ttl).min() else {
            return Ok(None);
        };
        if K::SINGLE && records.len() > 1 {
            return Err(failed(
                "querying",
                "multiple responses received, where one record can be managed",
            ));
        }
        let known = read_all::<K>(model)?;
        let mut elements = Vec::new();
        for record in records {
            let written = K::write(&record.data).ok_or_else(|| {
                let (other, name) = (record.record_type(), text::name_text(&record.name));
                failed(
                    "querying",
                    format_args!("didn't get a {} record, but a {other} record of \"{name}\"", K::TYPE),
                )
            })?;
            // A record of the server can correspond to several forms in the configuration.
            let spelled: Vec<_> = known.iter().filter(|(_, data)| same(data, &record.data)).collect();
            if spelled.is_empty() {
                elements.push(written);
            }
            elements.extend(spelled.into_iter().map(|(element, _)| element.clone()));
        }
        let mut model = model.clone();
        model.set_ttl(i64::from(ttl));
        K::set_elements(&mut model, elements);
        Ok(Some(model))
    }

    /// Reads the set after an update, and compares it with the plan.
    async fn outcome(&self, client: &Client, plan: K::Model, cx: &mut Context<Client>) -> Result<K::Model> {
        let Some(found) = self.look(client, &plan).await? else {
            return Err(failed(
                "querying",
                format_args!(
                    "the server took the update, but knows no {} record of \"{}\"",
                    K::TYPE,
                    plan.place().text()
                ),
            ));
        };
        let (wanted, got) = (K::elements(&plan), K::elements(&found));
        let is_planned = wanted.len() == got.len() && got.iter().all(|e| wanted.contains(e));
        if K::LENIENT || (is_planned && found.place().ttl == plan.place().ttl) {
            return Ok(found);
        }
        let reason = if is_planned {
            let (asked, kept) = (plan.place().ttl, found.place().ttl);
            format!(
                "the server keeps the records with ttl {kept} and not {asked}, so the configuration must say {kept}"
            )
        } else {
            "the name has other records of this type than those of the configuration, as if others manage it too"
                .to_owned()
        };
        let message = format!("{}: {reason}. What the server has is in the state", plan.place().text());
        cx.save(&found);
        Err(failed("updating", message))
    }
}

#[async_trait]
impl<K: Kind> Resource for Records<K> {
    type Model = K::Model;
    type Client = Client;

    const LENIENT: bool = K::LENIENT;

    fn schema(&self) -> Schema {
        Schema::of::<K::Model>().describe(K::DESCRIPTION)
    }

    /// Checks that each element is valid record data, and that the whole name is valid.
    fn validate(&self, config: &K::Model) -> Diagnostics {
        let mut problems: Vec<TextError> = K::elements(config).iter().filter_map(|e| K::read(e)?.err()).collect();
        let place = config.place();
        if text::is_complete(place.zone) && !text::is_complete(place.name) {
            problems.extend(text::name(&place.text()).err());
        }
        // The validators of single attributes already report these errors.
        problems.retain(|problem| {
            !matches!(
                problem,
                TextError::Name {
                    reason: NameError::NoDot | NameError::WhiteSpace,
                    ..
                }
            )
        });
        Diagnostics(problems.into_iter().map(unreadable).collect())
    }

    /// For types of the old SDK, plans no change if the values differ in their form only.
    async fn plan(&self, plan: &mut Plan<'_, K::Model>, _cx: &mut Context<Client>) -> Result<()> {
        let (mut planned, prior) = (plan.planned()?, plan.prior()?);
        // Only with the leniency for the old SDK may a plan differ from the configuration.
        let Some(prior) = prior.filter(|_| K::LENIENT) else {
            return Ok(());
        };
        let (Ok(old), Ok(new)) = (read_all::<K>(&prior), read_all::<K>(&planned)) else {
            return Ok(());
        };
        let has = |all: &[(K::Element, RData)], data: &RData| all.iter().any(|(_, other)| same(data, other));
        let is_known = planned
            .to_cty()
            .entries()
            .into_iter()
            .flatten()
            .all(|(_, value)| value.is_wholly_known());
        if is_known && old.iter().all(|(_, data)| has(&new, data)) && new.iter().all(|(_, data)| has(&old, data)) {
            K::set_elements(&mut planned, old.into_iter().map(|(element, _)| element).collect());
            if planned == prior {
                plan.set(&planned);
            }
        }
        Ok(())
    }

    async fn create(&self, mut plan: K::Model, cx: &mut Context<Client>) -> Result<K::Model> {
        let client = self.client(cx)?;
        let place = plan.place();
        let records: Result<Vec<_>> = read_all::<K>(&plan)?
            .into_iter()
            .map(|(_, data)| place.record(data))
            .collect();
        update(&client, "updating", place.zone, records?).await?;
        let id = place.text();
        plan.set_id(id);
        // Saved before the query: the records exist now, even if reading them fails.
        cx.save(&plan);
        self.outcome(&client, plan, cx).await
    }

    async fn read(&self, state: K::Model, cx: &mut Context<Client>) -> Result<Option<K::Model>> {
        self.look(&*self.client(cx)?, &state).await
    }

    async fn update(&self, prior: K::Model, mut plan: K::Model, cx: &mut Context<Client>) -> Result<K::Model> {
        let client = self.client(cx)?;
        let (old, new) = (read_all::<K>(&prior)?, read_all::<K>(&plan)?);
        let place = plan.place();
        let without = |all: &[(K::Element, RData)], others: &[(K::Element, RData)]| -> Result<Vec<Record>> {
            let gone = all
                .iter()
                .filter(|(_, data)| !others.iter().any(|(_, other)| same(data, other)));
            gone.map(|(_, data)| place.record(data.clone())).collect()
        };
        let mut records = without(&old, &new)?;
        // In an update, class NONE deletes one record, and class ANY the whole set (RFC 2136, section 2.5).
        for record in &mut records {
            record.dns_class = DNSClass::NONE;
            record.ttl = 0;
        }
        records.extend(without(&new, &old)?);
        if !records.is_empty() {
            update(&client, "updating", place.zone, records).await?;
        }
        let id = place.text();
        plan.set_id(id);
        self.outcome(&client, plan, cx).await
    }

    async fn delete(&self, state: K::Model, cx: &mut Context<Client>) -> Result<()> {
        let place = state.place();
        // A record with class ANY and without data deletes the whole set (RFC 2136, section 2.5.2).
        let mut all = Record::update0(place.name()?, 0, K::TYPE);
        all.dns_class = DNSClass::ANY;
        update(&*self.client(cx)?, "deleting", place.zone, vec![all]).await
    }

    async fn import(&self, id: &str, cx: &mut Context<Client>) -> Result<K::Model> {
        let client = self.client(cx)?;
        if !text::is_complete(id) {
            return Err(failed(
                "importing",
                format_args!("Not a fully-qualified DNS name: {id}. What is imported is named with a dot at the end"),
            ));
        }
        let name = text::name(id).map_err(unreadable)?;
        let mut zone = None;
        let labels: Vec<&[u8]> = name.iter().collect();
        for first in 0..labels.len() {
            let above = Name::from_labels(labels.iter().skip(first).copied()).map_err(unreadable)?;
            let answer = ask(&client, above, RecordType::SOA)
                .await
                .map_err(|e| failed("querying", e))?;
            match answer.metadata.response_code {
                // If the name is an alias, the answer is about the zone of its target, and says nothing about this zone.
                ResponseCode::NoError if answer.answers.iter().any(|r| r.record_type() == RecordType::CNAME) => {}
                ResponseCode::NoError => {
                    zone = answer
                        .answers
                        .iter()
                        .find(|r| r.record_type() == RecordType::SOA)
                        .map(|r| r.name.clone());
                    if zone.is_some() {
                        break;
                    }
                }
                ResponseCode::NXDomain => {}
                code => return Err(refused("querying", code)),
            }
        }
        let Some(zone) = zone else {
            return Err(failed(
                "querying",
                format_args!(
                    "No SOA record in authority section in response for {id}: the server knows no zone with this name"
                ),
            ));
        };
        let below = text::first_labels(&name, labels.len().saturating_sub(zone.iter().count()));
        let mut model = K::Model::default();
        model.locate(
            id.to_owned(),
            text::name_text(&zone),
            Some(below).filter(|b| !b.is_empty()),
        );
        Ok(model)
    }
}

/// Returns the rule that a text is a fully qualified name.
pub(crate) fn complete_name(what: &'static str) -> Validator {
    Validator::custom(move |check| name_problem(what, check.value.as_str()?, true).map(|d| d.at(check.path.clone())))
}

/// Returns the rule that a text is a name below a zone.
pub(crate) fn name_below_a_zone() -> Validator {
    Validator::custom(|check| {
        name_problem("DNS record name", check.value.as_str()?, false).map(|d| d.at(check.path.clone()))
    })
}

/// Returns the error in a name. If `complete` is set, the name must end with a dot; otherwise it must not.
pub(crate) fn name_problem(what: &str, name: &str, complete: bool) -> Option<Diagnostic> {
    let problem = if name.contains(char::is_whitespace) || (name.is_empty() && !complete) {
        "must not contain whitespace or be empty"
    } else if text::is_complete(name) && !complete {
        "must not be fully qualified: the zone's name follows it"
    } else if !text::is_complete(name) && complete {
        "must be fully qualified, with a dot at its end"
    } else {
        return None;
    };
    Some(Diagnostic::error(
        "Invalid Attribute Type",
        format!("{what} {problem}, got: {name:?}"),
    ))
}
