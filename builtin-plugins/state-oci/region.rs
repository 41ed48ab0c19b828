//! Service addresses of regions.

use monoform_sdk::env;

/// Regions, each with its name, its short name, and the domain of its servers. For a region that is not in this table, the most common
/// domain is used, unless a variable sets another one.
const REGIONS: &[(&str, &str, &str)] = &[
    ("af-johannesburg-1", "jnb", "oraclecloud.com"),
    ("ap-chiyoda-1", "nja", "oraclecloud8.com"),
    ("ap-chuncheon-1", "yny", "oraclecloud.com"),
    ("ap-chuncheon-2", "bno", "oraclecloud35.com"),
    ("ap-dcc-canberra-1", "wga", "oraclecloud10.com"),
    ("ap-dcc-gazipur-1", "dac", "oraclecloud15.com"),
    ("ap-hyderabad-1", "hyd", "oraclecloud.com"),
    ("ap-ibaraki-1", "ukb", "oraclecloud8.com"),
    ("ap-melbourne-1", "mel", "oraclecloud.com"),
    ("ap-mumbai-1", "bom", "oraclecloud.com"),
    ("ap-osaka-1", "kix", "oraclecloud.com"),
    ("ap-seoul-1", "icn", "oraclecloud.com"),
    ("ap-seoul-2", "dtz", "oraclecloud35.com"),
    ("ap-singapore-1", "sin", "oraclecloud.com"),
    ("ap-singapore-2", "xsp", "oraclecloud.com"),
    ("ap-suwon-1", "dln", "oraclecloud35.com"),
    ("ap-sydney-1", "syd", "oraclecloud.com"),
    ("ap-tokyo-1", "nrt", "oraclecloud.com"),
    ("ca-montreal-1", "yul", "oraclecloud.com"),
    ("ca-toronto-1", "yyz", "oraclecloud.com"),
    ("eu-amsterdam-1", "ams", "oraclecloud.com"),
    ("eu-crissier-1", "avf", "oraclecloud24.com"),
    ("eu-dcc-dublin-1", "ork", "oraclecloud14.com"),
    ("eu-dcc-dublin-2", "snn", "oraclecloud14.com"),
    ("eu-dcc-milan-1", "bgy", "oraclecloud14.com"),
    ("eu-dcc-milan-2", "mxp", "oraclecloud14.com"),
    ("eu-dcc-rating-1", "dus", "oraclecloud14.com"),
    ("eu-dcc-rating-2", "dtm", "oraclecloud14.com"),
    ("eu-dcc-zurich-1", "avz", "oraclecloud24.com"),
    ("eu-frankfurt-1", "fra", "oraclecloud.com"),
    ("eu-frankfurt-2", "str", "oraclecloud.eu"),
    ("eu-jovanovac-1", "beg", "oraclecloud20.com"),
    ("eu-madrid-1", "mad", "oraclecloud.com"),
    ("eu-madrid-2", "vll", "oraclecloud.eu"),
    ("eu-marseille-1", "mrs", "oraclecloud.com"),
    ("eu-milan-1", "lin", "oraclecloud.com"),
    ("eu-paris-1", "cdg", "oraclecloud.com"),
    ("eu-stockholm-1", "arn", "oraclecloud.com"),
    ("eu-zurich-1", "zrh", "oraclecloud.com"),
    ("il-jerusalem-1", "mtz", "oraclecloud.com"),
    ("me-abudhabi-1", "auh", "oraclecloud.com"),
    ("me-abudhabi-2", "rkt", "oraclecloud29.com"),
    ("me-abudhabi-3", "ahu", "oraclecloud26.com"),
    ("me-abudhabi-4", "shj", "oraclecloud29.com"),
    ("me-alain-1", "rba", "oraclecloud26.com"),
    ("me-dcc-doha-1", "doh", "oraclecloud21.com"),
    ("me-dcc-muscat-1", "mct", "oraclecloud9.com"),
    ("me-dubai-1", "dxb", "oraclecloud.com"),
    ("me-jeddah-1", "jed", "oraclecloud.com"),
    ("me-riyadh-1", "ruh", "oraclecloud.com"),
    ("mx-monterrey-1", "mty", "oraclecloud.com"),
    ("mx-queretaro-1", "qro", "oraclecloud.com"),
    ("sa-bogota-1", "bog", "oraclecloud.com"),
    ("sa-santiago-1", "scl", "oraclecloud.com"),
    ("sa-saopaulo-1", "gru", "oraclecloud.com"),
    ("sa-valparaiso-1", "vap", "oraclecloud.com"),
    ("sa-vinhedo-1", "vcp", "oraclecloud.com"),
    ("uk-cardiff-1", "cwl", "oraclecloud.com"),
    ("uk-gov-cardiff-1", "brs", "oraclegovcloud.uk"),
    ("uk-gov-london-1", "ltn", "oraclegovcloud.uk"),
    ("uk-london-1", "lhr", "oraclecloud.com"),
    ("us-ashburn-1", "iad", "oraclecloud.com"),
    ("us-chicago-1", "ord", "oraclecloud.com"),
    ("us-gov-ashburn-1", "ric", "oraclegovcloud.com"),
    ("us-gov-chicago-1", "pia", "oraclegovcloud.com"),
    ("us-gov-phoenix-1", "tus", "oraclegovcloud.com"),
    ("us-langley-1", "lfi", "oraclegovcloud.com"),
    ("us-luke-1", "luf", "oraclegovcloud.com"),
    ("us-phoenix-1", "phx", "oraclecloud.com"),
    ("us-saltlake-2", "aga", "oraclecloud.com"),
    ("us-sanjose-1", "sjc", "oraclecloud.com"),
    ("us-somerset-1", "ebb", "oraclecloud23.com"),
    ("us-thames-1", "ebl", "oraclecloud23.com"),
];

const USUAL: &str = "oraclecloud.com";

/// Returns the full name of a region, given its full or short name.
pub(crate) fn full_name(name: &str) -> String {
    let name = name.trim().to_lowercase();
    let found = REGIONS.iter().find(|(_, short, _)| *short == name);
    found.map_or(name.clone(), |(full, ..)| (*full).to_owned())
}

/// Returns the host name of a service in a region. A region that contains a dot is used as the domain.
pub(crate) fn host(service: &str, region: &str) -> String {
    if region.contains('.') {
        return format!("{service}.{region}");
    }
    let known = REGIONS.iter().find(|(name, ..)| *name == region);
    let ending = match known {
        Some((.., ending)) => (*ending).to_owned(),
        // The region may be newer than this table and belong to another realm, so the environment can set the domain.
        None => env::var("OCI_DEFAULT_REALM").unwrap_or_else(|| USUAL.to_owned()),
    };
    format!("{service}.{region}.{ending}")
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn regions_have_short_names_and_endings_of_their_own() {
        assert_eq!(full_name("IAD"), "us-ashburn-1");
        assert_eq!(
            host("objectstorage", "us-ashburn-1"),
            "objectstorage.us-ashburn-1.oraclecloud.com"
        );
        assert_eq!(host("auth", "eu-madrid-2"), "auth.eu-madrid-2.oraclecloud.eu");
        assert_eq!(host("auth", "new-1.example.com"), "auth.new-1.example.com");
    }
}
