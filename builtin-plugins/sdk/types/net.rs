//! IP addresses and address ranges.

use std::net::IpAddr;

use super::text::text_type;
use crate::model::ModelError;

/// An IP address, version 4 or 6. Two texts of the same address mean the same.
///
/// ```
/// use monoform_sdk::CustomType as _;
/// use monoform_sdk::types::IpAddress;
///
/// let short = IpAddress::new("2001:db8::1")?;
/// assert!(short.same(&IpAddress::new("2001:0DB8:0:0:0:0:0:1")?));
/// assert!(short.address().is_ipv6());
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpAddress {
    text: String,
    address: IpAddr,
}

text_type!(IpAddress);

impl IpAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// The text is not an IP address.
    pub fn new(text: impl Into<String>) -> Result<IpAddress, ModelError> {
        let text = text.into();
        match text.parse() {
            Ok(address) => Ok(IpAddress { text, address }),
            Err(_) => Err(ModelError::new(
                "it must be an IP address, such as \"192.0.2.1\" or \"2001:db8::1\"",
            )),
        }
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    fn meaning(&self) -> IpAddr {
        self.address
    }
}

impl From<IpAddr> for IpAddress {
    fn from(address: IpAddr) -> IpAddress {
        IpAddress {
            text: address.to_string(),
            address,
        }
    }
}

/// A range of IP addresses in CIDR notation: an address, and the number of its bits that belong to the prefix.
///
/// ```
/// use monoform_sdk::types::Cidr;
///
/// let range = Cidr::new("10.1.0.0/16")?;
/// assert_eq!(range.prefix_length(), 16);
/// assert!(range.contains("10.1.2.3".parse().unwrap()));
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cidr {
    text: String,
    address: IpAddr,
    prefix: u8,
}

text_type!(Cidr);

impl Cidr {
    /// Reads a range. Bits after the prefix may be set, as in `10.0.0.5/8`: the address of a machine with the prefix length of its network.
    ///
    /// # Errors
    /// The text is not in CIDR notation.
    pub fn new(text: impl Into<String>) -> Result<Cidr, ModelError> {
        let text = text.into();
        let read = || {
            let (address, prefix) = text.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            // Excludes a sign and leading zeros, which `parse` would accept.
            let digits = prefix.bytes().all(|b| b.is_ascii_digit()) && (prefix == "0" || !prefix.starts_with('0'));
            let prefix = prefix
                .parse()
                .ok()
                .filter(|prefix| digits && *prefix <= bits(address))?;
            Some((address, prefix))
        };
        match read() {
            Some((address, prefix)) => Ok(Cidr { text, address, prefix }),
            None => Err(ModelError::new(
                "it must be a range of addresses in CIDR notation, such as \"10.0.0.0/16\" or \"2001:db8::/32\"",
            )),
        }
    }

    /// Returns the address before the slash.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the number of bits of the prefix.
    #[must_use]
    pub fn prefix_length(&self) -> u8 {
        self.prefix
    }

    /// Returns the first address of the range, in which all bits after the prefix are zero.
    #[must_use]
    pub fn network(&self) -> IpAddr {
        masked(self.address, self.prefix)
    }

    /// Returns true if the address is in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.network()
    }

    fn meaning(&self) -> (IpAddr, u8) {
        (self.address, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let behind = u32::from(bits(address).saturating_sub(prefix));
    match address {
        // `checked_shl` returns `None` for a shift by all bits (prefix length 0); the mask is zero then.
        IpAddr::V4(a) => IpAddr::V4((a.to_bits() & u32::MAX.checked_shl(behind).unwrap_or_default()).into()),
        IpAddr::V6(a) => IpAddr::V6((a.to_bits() & u128::MAX.checked_shl(behind).unwrap_or_default()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomType as _;

    #[test]
    fn forms_of_one_address_mean_the_same() {
        let read = |text: &str| IpAddress::new(text).unwrap();
        assert!(read("::1").same(&read("0:0:0:0:0:0:0:1")) && !read("::1").same(&read("::2")));
        for wrong in ["", "10.0.0", "10.0.0.256", "010.0.0.1", "::1%eth0", "10.0.0.1/8"] {
            assert!(IpAddress::new(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_contain_addresses_with_their_prefix() {
        let read = |text: &str| Cidr::new(text).unwrap();
        let range = read("10.1.2.3/16");
        assert_eq!(range.network().to_string(), "10.1.0.0");
        assert!(range.contains("10.1.255.255".parse().unwrap()) && !range.contains("10.2.0.0".parse().unwrap()));
        assert!(
            read("::/0").contains("2001:db8::1".parse().unwrap())
                && !read("::/0").contains("10.0.0.1".parse().unwrap())
        );
        assert!(read("0.0.0.0/0").contains("255.0.0.1".parse().unwrap()));
        assert!(read("2001:DB8::/32").same(&read("2001:db8:0::/32")) && !range.same(&read("10.1.0.0/16")));
        for wrong in [
            "10.0.0.0",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/08",
            "10.0.0.0/",
            "/8",
        ] {
            assert!(Cidr::new(wrong).is_err(), "{wrong}");
        }
    }
}
