//! Descriptions of the concurrency limits of providers that an operation has adapted.

use engine::lanes::Settled;

/// Returns the limits as a list such as `aws 37, github 2`.
#[must_use]
pub(crate) fn limits(limits: &[Settled]) -> String {
    let each = limits.iter().map(|one| format!("{} {}", one.provider.ty, one.limit));
    each.collect::<Vec<_>>().join(", ")
}

/// Returns the line with the limits at the end of an operation.
#[must_use]
pub(crate) fn line(settled: &[Settled]) -> String {
    let throttled: usize = settled.iter().map(|one| one.throttled).sum();
    let mut line = format!("Operations at a time: {}", limits(settled));
    match throttled {
        0 => {}
        1 => line.push_str(" (1 request came too fast)"),
        n => line.push_str(&format!(" ({n} requests came too fast)")),
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_limits_and_refused_requests() {
        let one = |ty: &str, limit, throttled| Settled {
            provider: addrs::Provider::default_for(ty),
            limit,
            throttled,
        };
        assert_eq!(line(&[one("aws", 37, 0)]), "Operations at a time: aws 37");
        assert_eq!(
            line(&[one("aws", 37, 2), one("github", 2, 1)]),
            "Operations at a time: aws 37, github 2 (3 requests came too fast)"
        );
    }
}
