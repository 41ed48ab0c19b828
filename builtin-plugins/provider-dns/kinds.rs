//! The eight types of records, with their conversions to and from record data.

use std::net::Ipv6Addr;

use hickory_proto::rr::rdata::{self, name};
use hickory_proto::rr::{Name, RData, RecordType};
use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{Attr, Diagnostic, Set, Validator, model};

use crate::records::{Kind, Owner, RecordModel, complete_name, name_below_a_zone, name_problem};
use crate::text::{self, TextError};

const TTL: i64 = 3600;

// Defines a model with the attributes that all record sets have, and its own.
macro_rules! record_model {
    (
        $(#[$meta:meta])*
        $vis:vis struct $model:ident(name: $name:expr, ttl: $ttl:expr, id: $id:expr) { $($fields:tt)* }
    ) => {
        model! {
            $(#[$meta])*
            $vis struct $model {
                /// The zone, with a dot at its end.
                pub zone: Attr<String> = required().validate(complete_name("DNS zone name")).requires_replace(),
                /// The name in the zone, which the zone's name follows.
                pub name: Attr<String> = $name.validate(name_below_a_zone()).requires_replace(),
                /// For how many seconds others may keep the records; 3600 unless it is set.
                pub ttl: Attr<i64> = $ttl.default(TTL).requires_replace(),
                /// The whole name, with a dot at its end.
                pub id: Attr<String> = $id,
                $($fields)*
            }
        }

        impl RecordModel for $model {
            fn place(&self) -> Owner<'_> {
                Owner {
                    zone: self.zone.text(),
                    name: self.name.text(),
                    ttl: self.ttl.known().copied().unwrap_or(TTL),
                }
            }
            fn locate(&mut self, id: String, zone: String, name: Option<String>) {
                (self.id, self.zone, self.name) = (id.into(), zone.into(), name.into());
            }
            fn set_id(&mut self, id: String) {
                self.id = id.into();
            }
            fn set_ttl(&mut self, ttl: i64) {
                self.ttl = ttl.into();
            }
        }
    };
}

type Texts = Attr<Set<Attr<String>>>;

fn known(texts: &Texts) -> Vec<String> {
    let all = texts.known().map_or(&[][..], |set| &set.0);
    all.iter().filter_map(|text| text.known().cloned()).collect()
}

fn texts(elements: Vec<String>) -> Texts {
    Set(elements.into_iter().map(Attr::Known).collect()).into()
}

/// Returns the rule for at least one element: a set without records does not exist.
fn some() -> Validator {
    Validator::Size(1, usize::MAX)
}

fn complete_names(what: &'static str) -> Validator {
    Validator::custom(move |check| {
        let problems = check
            .value
            .as_seq()?
            .iter()
            .filter_map(|v| name_problem(what, v.as_str()?, true));
        problems
            .into_iter()
            .next()
            .map(|d: Diagnostic| d.at(check.path.clone()))
    })
}

/// Converts a number of a record to 16 bits; `None` if it is not known.
fn short(number: &Attr<i64>, what: &'static str) -> Option<Result<u16, TextError>> {
    let number = *number.known()?;
    Some(u16::try_from(number).map_err(|_| TextError::Number { what, number }))
}

fn long(text: &Attr<String>) -> Option<Result<Name, TextError>> {
    Some(text::name(text.as_str()?))
}

record_model! {
    /// IPv4 addresses.
    pub struct AModel(name: optional(), ttl: optional(), id: optional().computed().keep()) {
        /// The addresses of the name.
        pub addresses: Texts = required().validate(some()),
    }
}

pub(crate) struct A;

impl Kind for A {
    type Model = AModel;
    type Element = String;

    const TYPE: RecordType = RecordType::A;
    const DESCRIPTION: &'static str = "The IPv4 addresses of a name: all its A records.";
    const LENIENT: bool = true;

    fn elements(model: &AModel) -> Vec<String> {
        known(&model.addresses)
    }
    fn set_elements(model: &mut AModel, elements: Vec<String>) {
        model.addresses = texts(elements);
    }
    fn read(element: &String) -> Option<Result<RData, TextError>> {
        let address = text::ipv4(element).map(|a| RData::A(rdata::A(a)));
        Some(address.ok_or_else(|| TextError::Ipv4(element.clone())))
    }
    fn write(data: &RData) -> Option<String> {
        match data {
            RData::A(a) => Some(a.0.to_string()),
            _ => None,
        }
    }
}

record_model! {
    /// IPv6 addresses.
    pub struct AaaaModel(name: optional(), ttl: optional(), id: optional().computed().keep()) {
        /// The addresses of the name.
        pub addresses: Texts = required().validate(some()),
    }
}

pub(crate) struct Aaaa;

impl Kind for Aaaa {
    type Model = AaaaModel;
    type Element = String;

    const TYPE: RecordType = RecordType::AAAA;
    const DESCRIPTION: &'static str = "The IPv6 addresses of a name: all its AAAA records.";
    const LENIENT: bool = true;

    fn elements(model: &AaaaModel) -> Vec<String> {
        known(&model.addresses)
    }
    fn set_elements(model: &mut AaaaModel, elements: Vec<String>) {
        model.addresses = texts(elements);
    }
    fn read(element: &String) -> Option<Result<RData, TextError>> {
        let address = element.parse::<Ipv6Addr>().map(|a| RData::AAAA(rdata::AAAA(a)));
        Some(address.map_err(|_| TextError::Ipv6(element.clone())))
    }
    fn write(data: &RData) -> Option<String> {
        match data {
            RData::AAAA(a) => Some(a.0.to_string()),
            _ => None,
        }
    }
}

record_model! {
    /// An alias.
    pub struct CnameModel(name: required(), ttl: optional().computed(), id: computed()) {
        /// Target of the alias, with a dot at its end.
        pub cname: Attr<String> = required().validate(complete_name("CNAME")),
    }
}

pub(crate) struct Cname;

impl Kind for Cname {
    type Model = CnameModel;
    type Element = String;

    const TYPE: RecordType = RecordType::CNAME;
    const DESCRIPTION: &'static str = "An alias: a CNAME record.";
    const SINGLE: bool = true;

    fn elements(model: &CnameModel) -> Vec<String> {
        model.cname.known().cloned().into_iter().collect()
    }
    fn set_elements(model: &mut CnameModel, elements: Vec<String>) {
        model.cname = elements.into_iter().next().into();
    }
    fn read(element: &String) -> Option<Result<RData, TextError>> {
        Some(text::name(element).map(|n| RData::CNAME(name::CNAME(n))))
    }
    fn write(data: &RData) -> Option<String> {
        match data {
            RData::CNAME(n) => Some(text::name_text(&n.0)),
            _ => None,
        }
    }
}

model! {
    /// A mail server.
    pub struct Exchange {
        /// Servers with a lower number come first.
        pub preference: Attr<i64> = required(),
        /// The name of the server, with a dot at its end.
        pub exchange: Attr<String> = required().validate(complete_name("MX exchange")),
    }
}

record_model! {
    /// Mail servers.
    pub struct MxModel(name: optional(), ttl: optional().computed(), id: computed()) {
        /// A mail server. There may be several.
        pub mx: Attr<Set<Exchange>> = block().validate(some()),
    }
}

pub(crate) struct Mx;

impl Kind for Mx {
    type Model = MxModel;
    type Element = Exchange;

    const TYPE: RecordType = RecordType::MX;
    const DESCRIPTION: &'static str = "The mail servers of a name: all its MX records.";

    fn elements(model: &MxModel) -> Vec<Exchange> {
        model.mx.known().map(|set| set.0.clone()).unwrap_or_default()
    }
    fn set_elements(model: &mut MxModel, elements: Vec<Exchange>) {
        model.mx = Set(elements).into();
    }
    fn read(element: &Exchange) -> Option<Result<RData, TextError>> {
        let (preference, exchange) = (short(&element.preference, "preference")?, long(&element.exchange)?);
        Some(preference.and_then(|p| Ok(RData::MX(rdata::MX::new(p, exchange?)))))
    }
    fn write(data: &RData) -> Option<Exchange> {
        match data {
            RData::MX(mx) => Some(Exchange {
                preference: i64::from(mx.preference).into(),
                exchange: text::name_text(&mx.exchange).into(),
            }),
            _ => None,
        }
    }
}

record_model! {
    /// Name servers.
    pub struct NsModel(name: required(), ttl: optional().computed(), id: computed()) {
        /// The names of the servers, each with a dot at its end.
        pub nameservers: Texts = required().validate(some()).validate(complete_names("name server")),
    }
}

pub(crate) struct Ns;

impl Kind for Ns {
    type Model = NsModel;
    type Element = String;

    const TYPE: RecordType = RecordType::NS;
    const DESCRIPTION: &'static str = "The name servers of a zone below this one: all its NS records.";

    fn elements(model: &NsModel) -> Vec<String> {
        known(&model.nameservers)
    }
    fn set_elements(model: &mut NsModel, elements: Vec<String>) {
        model.nameservers = texts(elements);
    }
    fn read(element: &String) -> Option<Result<RData, TextError>> {
        Some(text::name(element).map(|n| RData::NS(name::NS(n))))
    }
    fn write(data: &RData) -> Option<String> {
        match data {
            RData::NS(n) => Some(text::name_text(&n.0)),
            _ => None,
        }
    }
}

record_model! {
    /// The name of an address.
    pub struct PtrModel(name: optional(), ttl: optional().computed(), id: computed()) {
        /// The name, with a dot at its end.
        pub ptr: Attr<String> = required().validate(complete_name("PTR")),
    }
}

pub(crate) struct Ptr;

impl Kind for Ptr {
    type Model = PtrModel;
    type Element = String;

    const TYPE: RecordType = RecordType::PTR;
    const DESCRIPTION: &'static str = "The name that belongs to an address: a PTR record.";
    const SINGLE: bool = true;

    fn elements(model: &PtrModel) -> Vec<String> {
        model.ptr.known().cloned().into_iter().collect()
    }
    fn set_elements(model: &mut PtrModel, elements: Vec<String>) {
        model.ptr = elements.into_iter().next().into();
    }
    fn read(element: &String) -> Option<Result<RData, TextError>> {
        Some(text::name(element).map(|n| RData::PTR(name::PTR(n))))
    }
    fn write(data: &RData) -> Option<String> {
        match data {
            RData::PTR(n) => Some(text::name_text(&n.0)),
            _ => None,
        }
    }
}

model! {
    /// A server of a service.
    pub struct Service {
        /// Servers with a lower number come first.
        pub priority: Attr<i64> = required(),
        /// Among servers of one priority, those with a higher number get more requests.
        pub weight: Attr<i64> = required(),
        /// The port of the service on the server.
        pub port: Attr<i64> = required(),
        /// The name of the server, with a dot at its end.
        pub target: Attr<String> = required().validate(complete_name("SRV target")),
    }
}

record_model! {
    /// Servers of a service.
    pub struct SrvModel(name: required(), ttl: optional().computed(), id: computed()) {
        /// A server. There may be several.
        pub srv: Attr<Set<Service>> = block().validate(some()),
    }
}

pub(crate) struct Srv;

impl Kind for Srv {
    type Model = SrvModel;
    type Element = Service;

    const TYPE: RecordType = RecordType::SRV;
    const DESCRIPTION: &'static str = "The servers of a service: all its SRV records.";

    fn elements(model: &SrvModel) -> Vec<Service> {
        model.srv.known().map(|set| set.0.clone()).unwrap_or_default()
    }
    fn set_elements(model: &mut SrvModel, elements: Vec<Service>) {
        model.srv = Set(elements).into();
    }
    fn read(element: &Service) -> Option<Result<RData, TextError>> {
        let (priority, weight) = (short(&element.priority, "priority")?, short(&element.weight, "weight")?);
        let (port, target) = (short(&element.port, "port")?, long(&element.target)?);
        Some(priority.and_then(|priority| Ok(RData::SRV(rdata::SRV::new(priority, weight?, port?, target?)))))
    }
    fn write(data: &RData) -> Option<Service> {
        match data {
            RData::SRV(srv) => Some(Service {
                priority: i64::from(srv.priority).into(),
                weight: i64::from(srv.weight).into(),
                port: i64::from(srv.port).into(),
                target: text::name_text(&srv.target).into(),
            }),
            _ => None,
        }
    }
}

record_model! {
    /// Texts.
    pub struct TxtModel(name: optional(), ttl: optional().computed(), id: computed()) {
        /// The texts, as zone files write them between quotation marks: quotation marks and backslashes are escaped by a backslash.
        pub txt: Texts = required().validate(some()),
    }
}

pub(crate) struct Txt;

impl Kind for Txt {
    type Model = TxtModel;
    type Element = String;

    const TYPE: RecordType = RecordType::TXT;
    const DESCRIPTION: &'static str = "The texts of a name: all its TXT records.";

    fn elements(model: &TxtModel) -> Vec<String> {
        known(&model.txt)
    }
    fn set_elements(model: &mut TxtModel, elements: Vec<String>) {
        model.txt = texts(elements);
    }
    fn read(element: &String) -> Option<Result<RData, TextError>> {
        Some(text::txt(element).map(RData::TXT))
    }
    fn write(data: &RData) -> Option<String> {
        match data {
            RData::TXT(txt) => Some(text::txt_text(txt)),
            _ => None,
        }
    }
}
