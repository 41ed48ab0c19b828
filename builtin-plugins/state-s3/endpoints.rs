//! Regions, and the URLs of their services.

const REGIONS: &[&str] = &[
    "af-south-1",
    "ap-east-1",
    "ap-east-2",
    "ap-northeast-1",
    "ap-northeast-2",
    "ap-northeast-3",
    "ap-south-1",
    "ap-south-2",
    "ap-southeast-1",
    "ap-southeast-2",
    "ap-southeast-3",
    "ap-southeast-4",
    "ap-southeast-5",
    "ap-southeast-6",
    "ap-southeast-7",
    "ca-central-1",
    "ca-west-1",
    "eu-central-1",
    "eu-central-2",
    "eu-north-1",
    "eu-south-1",
    "eu-south-2",
    "eu-west-1",
    "eu-west-2",
    "eu-west-3",
    "il-central-1",
    "me-central-1",
    "me-south-1",
    "mx-central-1",
    "sa-east-1",
    "us-east-1",
    "us-east-2",
    "us-west-1",
    "us-west-2",
    "cn-north-1",
    "cn-northwest-1",
    "us-gov-east-1",
    "us-gov-west-1",
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-east-1",
    "us-isof-south-1",
    "eu-isoe-west-1",
    "eusc-de-east-1",
];

/// Returns true if the region is known.
pub(crate) fn is_region(name: &str) -> bool {
    REGIONS.contains(&name)
}

/// Returns the domains of a region's servers: the default domain, and the one for dual-stack endpoints (IPv4 and IPv6).
fn suffixes(region: &str) -> (&'static str, &'static str) {
    match region {
        r if r.starts_with("cn-") => ("amazonaws.com.cn", "api.amazonwebservices.com.cn"),
        r if r.starts_with("us-iso-") => ("c2s.ic.gov", "c2s.ic.gov"),
        r if r.starts_with("us-isob-") => ("sc2s.sgov.gov", "sc2s.sgov.gov"),
        r if r.starts_with("us-isof-") => ("csp.hci.ic.gov", "csp.hci.ic.gov"),
        r if r.starts_with("eu-isoe-") => ("cloud.adc-e.uk", "cloud.adc-e.uk"),
        r if r.starts_with("eusc-") => ("amazonaws.eu", "api.amazonwebservices.eu"),
        _ => ("amazonaws.com", "api.aws"),
    }
}

/// Returns the URL of a service.
pub(crate) fn service_address(service: &str, region: &str, fips: bool, dualstack: bool) -> String {
    let (usual, both) = suffixes(region);
    let name = if fips {
        format!("{service}-fips")
    } else {
        service.to_owned()
    };
    match service {
        "s3" if dualstack => format!("https://{name}.dualstack.{region}.{usual}"),
        // IAM is a global service: one URL serves all regions of a partition.
        "iam" => match usual {
            "amazonaws.com" if region.starts_with("us-gov-") => "https://iam.us-gov.amazonaws.com".to_owned(),
            "amazonaws.com" => format!("https://{name}.amazonaws.com"),
            "amazonaws.com.cn" => "https://iam.cn-north-1.amazonaws.com.cn".to_owned(),
            _ => format!("https://{name}.{region}.{usual}"),
        },
        _ if dualstack => format!("https://{name}.{region}.{both}"),
        _ => format!("https://{name}.{region}.{usual}"),
    }
}

/// Returns the region that signatures of requests to IAM must contain.
pub(crate) fn iam_region(region: &str) -> &str {
    match region {
        r if r.starts_with("us-gov-") => "us-gov-west-1",
        r if r.starts_with("cn-") => "cn-north-1",
        r if suffixes(r).0 == "amazonaws.com" => "us-east-1",
        r => r,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_partition() {
        assert_eq!(
            service_address("s3", "eu-west-1", false, false),
            "https://s3.eu-west-1.amazonaws.com"
        );
        assert_eq!(
            service_address("s3", "us-west-2", true, true),
            "https://s3-fips.dualstack.us-west-2.amazonaws.com"
        );
        assert_eq!(
            service_address("sts", "cn-north-1", false, false),
            "https://sts.cn-north-1.amazonaws.com.cn"
        );
        assert_eq!(
            service_address("dynamodb", "us-east-1", false, true),
            "https://dynamodb.us-east-1.api.aws"
        );
        assert_eq!(
            service_address("iam", "eu-west-1", false, false),
            "https://iam.amazonaws.com"
        );
        assert!(is_region("eu-west-1") && !is_region("eu-west-9"));
    }
}
