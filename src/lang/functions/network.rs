//! Functions for IP networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use addrs::program::Mode;
use cty::{Type, Value};

use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, number, string, text};

pub(super) const FUNCTIONS: &[Function] = &[
    // Only OpenTofu has this function.
    Function::new(
        "cidrcontains",
        &[string("containing_prefix"), string("contained_ip_or_prefix")],
        Returns::Bool,
        cidrcontains,
    ),
    Function::new(
        "cidrhost",
        &[string("prefix"), number("hostnum")],
        Returns::String,
        cidrhost,
    ),
    Function::new("cidrnetmask", &[string("prefix")], Returns::String, |a, _, _| {
        let network = Network::parse(text(a, 0))?;
        if network.width != 32 {
            return Err(CallError::failed(format!(
                "IPv6 addresses cannot have a netmask: {}",
                text(a, 0)
            )));
        }
        let mask = u32::MAX.checked_shl(32 - u32::from(network.length)).unwrap_or(0);
        Ok(Value::string(Ipv4Addr::from(mask).to_string()))
    }),
    Function::new(
        "cidrsubnet",
        &[string("prefix"), number("newbits"), number("netnum")],
        Returns::String,
        cidrsubnet,
    ),
    Function::new("cidrsubnets", &[string("prefix")], Returns::ListOfString, cidrsubnets).variadic(number("newbits")),
];

/// An IP network: its first address, with all host bits zero, and the length of its prefix.
#[derive(Clone, Copy)]
struct Network {
    address: u128,
    length: u8,
    /// Number of bits in an address: 32 or 128.
    width: u8,
}

impl Network {
    fn parse(prefix_text: &str) -> CallResult<Network> {
        let invalid = |text: &str| {
            CallError::failed(format!(
                "{text:?} is not an address and the length of a prefix, such as \"10.0.0.0/8\" or \"2001:db8::/32\""
            ))
        };
        let (address, length) = prefix_text.split_once('/').ok_or_else(|| invalid(prefix_text))?;
        let (address, width) = match parse_address(address).ok_or_else(|| invalid(prefix_text))? {
            IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
            IpAddr::V6(v6) => (u128::from(v6), 128),
        };
        // The library's parser would accept a sign, too.
        let digits = !length.is_empty() && length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit());
        let length: u8 = length
            .parse()
            .ok()
            .filter(|n| digits && *n <= width)
            .ok_or_else(|| invalid(prefix_text))?;
        Ok(Network {
            address: address & mask(length, width),
            length,
            width,
        })
    }

    /// Converts a network of IPv4-mapped IPv6 addresses to the IPv4 network. Other networks stay unchanged.
    fn unmapped(self) -> Network {
        const MAPPED: u128 = 0xffff << 32;
        if self.width != 128 || self.length < 96 || self.address & mask(96, 128) != MAPPED {
            return self;
        }
        Network {
            address: self.address & u128::from(u32::MAX),
            length: self.length - 96,
            width: 32,
        }
    }

    fn text(self, address: u128) -> String {
        if self.width == 32 {
            Ipv4Addr::from(u32::try_from(address & u128::from(u32::MAX)).unwrap_or(0)).to_string()
        } else {
            Ipv6Addr::from(address).to_string()
        }
    }
}

/// Parses an address. Octets with leading zeros are decimal, as Terraform has always read them.
fn parse_address(text: &str) -> Option<IpAddr> {
    // The standard parser refuses leading zeros, but IPv6 addresses need no exception for them.
    if text.contains(':') {
        return text.parse().ok();
    }
    let mut octets = [0u8; 4];
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() != 4 {
        return None;
    }
    for (octet, part) in octets.iter_mut().zip(parts) {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part
            .trim_start_matches('0')
            .parse()
            .ok()
            .or_else(|| part.bytes().all(|b| b == b'0').then_some(0))?;
    }
    Some(IpAddr::from(octets))
}

/// Returns a mask of `length` leading ones in the low `width` bits.
fn mask(length: u8, width: u8) -> u128 {
    if length == 0 {
        return 0;
    }
    let all = u128::MAX >> (128 - u32::from(width));
    let host = u32::from(width - length);
    if host == 0 { all } else { (all >> host) << host }
}

/// Returns an argument that is a whole number of up to 128 bits.
fn whole(args: &[Value], i: usize, otherwise: &str) -> CallResult<i128> {
    let number = args.get(i).and_then(Value::as_number).filter(|n| n.is_integer());
    let number = number.ok_or_else(|| CallError::failed(otherwise))?;
    let too_large = || CallError::failed("the number is larger than any that a network has room for");
    number.to_i128().ok_or_else(too_large)
}

fn cidrcontains(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let (containing, contained) = (text(args, 0), text(args, 1));
    let outer = Network::parse(containing)?.unmapped();
    let inner = match contained.contains('/') {
        true => Network::parse(contained).ok(),
        false => parse_address(contained).and_then(|address| {
            let length = if address.is_ipv4() { 32 } else { 128 };
            Network::parse(&format!("{address}/{length}")).ok()
        }),
    };
    let inner = inner.ok_or_else(|| CallError::failed(format!("invalid IP address or prefix: {contained}")))?;
    let inner = inner.unmapped();
    if inner.width != outer.width {
        return Err(CallError::failed(format!(
            "address family mismatch: {containing} vs. {contained}"
        )));
    }
    let inside = inner.length >= outer.length && inner.address & mask(outer.length, outer.width) == outer.address;
    Ok(Value::bool(inside))
}

fn cidrhost(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let host = whole(args, 1, "value must be a whole number")?;
    let network = Network::parse(text(args, 0))?;
    let bits = u32::from(network.width - network.length);
    let room: u128 = if bits == 128 { u128::MAX } else { (1u128 << bits) - 1 };
    let does_not_fit = || {
        CallError::failed(format!(
            "prefix of {} does not accommodate a host numbered {host}",
            network.length
        ))
    };
    let offset = if host < 0 {
        // Negative numbers count from the end: -1 is the last address.
        let back = host.unsigned_abs() - 1;
        if back > room {
            return Err(does_not_fit());
        }
        room - back
    } else {
        host.unsigned_abs()
    };
    if offset > room {
        return Err(does_not_fit());
    }
    Ok(Value::string(network.text(network.address | offset)))
}

fn cidrsubnet(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let newbits = whole(args, 1, super::NOT_WHOLE)?;
    let netnum = whole(args, 2, "value must be a whole number")?;
    let network = Network::parse(text(args, 0))?;
    let length = i128::from(network.length).saturating_add(newbits);
    if length > i128::from(network.width) || length < 0 {
        return Err(CallError::failed(format!(
            "insufficient address space to extend prefix of {} by {newbits}",
            network.length
        )));
    }
    let most: u128 = match u32::try_from(newbits) {
        Ok(128) => u128::MAX,
        Ok(bits) => (1u128 << bits) - 1,
        // `newbits` is negative, so the result is a larger network. Only one of that size contains this network: number
        // 0.
        Err(_) => 0,
    };
    if netnum.unsigned_abs() > most || netnum < 0 {
        return Err(CallError::failed(format!(
            "prefix extension of {newbits} does not accommodate a subnet numbered {netnum}"
        )));
    }
    let length = u8::try_from(length).unwrap_or(network.width);
    let shift = u32::from(network.width - length);
    let address =
        (network.address & mask(length, network.width)) | netnum.unsigned_abs().checked_shl(shift).unwrap_or(0);
    Ok(Value::string(format!("{}/{length}", network.text(address))))
}

fn cidrsubnets(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let network = Network::parse(text(args, 0)).map_err(|e| match e {
        CallError::Failed(message) => CallError::argument(0, message),
        other => other,
    })?;
    let end = network.address | !mask(network.length, network.width) & mask(network.width, network.width);
    let mut next = Some(network.address);
    let mut out = Vec::new();
    for i in 1..args.len() {
        let newbits = whole(args, i, super::NOT_WHOLE).map_err(|e| match e {
            CallError::Failed(message) => CallError::argument(i, message),
            other => other,
        })?;
        if newbits < 1 {
            return Err(CallError::argument(i, "must be at least 1"));
        }
        // OpenTofu 1.13 has no limit for IPv6. An IPv4 address has only 32 bits, so more are always an error.
        if newbits > 32 && (network.width == 32 || Mode::current() == Mode::Terraform) {
            return Err(CallError::argument(i, "must not exceed 32"));
        }
        let length = i128::from(network.length) + newbits;
        let Some(length) = u8::try_from(length).ok().filter(|l| *l <= network.width) else {
            let protocol = if network.width == 32 { "IPv4" } else { "IPv6" };
            return Err(CallError::argument(
                i,
                format!("the prefix would have {length} bits, more than an {protocol} address has"),
            ));
        };
        let size_bits = u32::from(network.width - length);
        let size = 1u128 << size_bits.min(127);
        // Networks begin at multiples of their size, so the address is rounded up.
        let start = next.and_then(|n| n.checked_add(size - 1)).map(|n| n & !(size - 1));
        let Some(start) = start.filter(|s| s.checked_add(size - 1).is_some_and(|last| last <= end)) else {
            return Err(CallError::argument(
                i,
                format!(
                    "the prefix has no room for another network of {length} bits after {}",
                    out.last()
                        .map_or_else(String::new, |v: &Value| v.as_str().unwrap_or_default().to_owned())
                ),
            ));
        };
        out.push(Value::string(format!("{}/{length}", network.text(start))));
        next = start.checked_add(size);
    }
    Ok(Value::list(Type::String, out))
}
