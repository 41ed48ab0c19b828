//! How far downloads are: one line of a terminal, which the next line of output replaces.

use packages::download::Overall;

use crate::session::Session;

/// The width of the bar.
const BAR: u64 = 24;

/// Shows it on a terminal.
pub fn show(session: &Session, overall: Overall) {
    if session.stream.is_none() && overall.running > 0 {
        session.ui.passing(&line(overall));
    }
}

fn line(overall: Overall) -> String {
    let packages = match overall.running {
        1 => "1 package".to_owned(),
        n => format!("{n} packages"),
    };
    let mega = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    match overall.expected.filter(|expected| *expected > 0) {
        None => format!("  Downloading {packages}: {} MB", mega(overall.received)),
        Some(expected) => {
            let received = overall.received.min(expected);
            let part =
                |of: u64| u64::try_from(u128::from(received) * u128::from(of) / u128::from(expected)).unwrap_or(of);
            let done = usize::try_from(part(BAR)).unwrap_or_default();
            let left = usize::try_from(BAR).unwrap_or_default() - done;
            format!(
                "  Downloading {packages}: [{}{}] {:>3} % of {} MB",
                "#".repeat(done),
                ".".repeat(left),
                part(100),
                mega(expected)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_where_the_size_is_known() {
        let mut overall = Overall {
            running: 1,
            received: 12_500_000,
            expected: Some(50_000_000),
        };
        assert_eq!(
            line(overall),
            "  Downloading 1 package: [######..................]  25 % of 50.0 MB"
        );
        overall.running = 3;
        overall.expected = None;
        assert_eq!(line(overall), "  Downloading 3 packages: 12.5 MB");
    }
}
