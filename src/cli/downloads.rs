//! Progress of downloads: a bar for each, in the live area of a terminal.

use packages::download::{Overall, Running};
use views::area::Line;

use crate::session::Surroundings;

/// Width of a bar, in columns.
const BAR: u64 = 24;

/// Shows the progress in the live area, if there is one.
pub fn show(surroundings: &Surroundings, overall: &Overall<'_>) {
    if surroundings.stream.is_none() && surroundings.ui.is_live() && !overall.running.is_empty() {
        surroundings.ui.area(&lines(overall));
    }
}

fn lines(overall: &Overall<'_>) -> Vec<Line> {
    let packages = match overall.running.len() {
        1 => "1 package".to_owned(),
        n => format!("{n} packages"),
    };
    let amount = amount(overall.received, overall.expected);
    let mut out = vec![Line::heading(format!("Downloading {packages}: {amount}"))];
    out.extend(overall.running.iter().map(|one| Line::part(line(one))));
    out
}

/// Returns the line of a download. The bar comes first, so that a narrow terminal shows it.
fn line(one: &Running<'_>) -> String {
    let bar = match one.expected.filter(|expected| *expected > 0) {
        None => "?".repeat(usize::try_from(BAR).unwrap_or_default()),
        Some(expected) => {
            let received = one.received.min(expected);
            // The length is computed in 128 bits, where the product cannot overflow.
            let done = u128::from(received) * u128::from(BAR) / u128::from(expected);
            let done = usize::try_from(done).unwrap_or_default();
            let left = usize::try_from(BAR).unwrap_or_default().saturating_sub(done);
            format!("{}{}", "#".repeat(done), ".".repeat(left))
        }
    };
    format!("  [{bar}] {} ({})", one.name, amount(one.received, one.expected))
}

/// Formats an amount, like `12.5 of 50.0 MB`.
fn amount(received: u64, expected: Option<u64>) -> String {
    let mega = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    match expected {
        None => format!("{} MB", mega(received)),
        Some(expected) => format!("{} of {} MB", mega(received), mega(expected)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_download_has_a_bar_where_its_size_is_known() {
        let running = |name, received, expected| Running {
            name,
            received,
            expected,
        };
        let one = running("hashicorp/aws v6.0.0", 12_500_000, Some(50_000_000));
        let overall = Overall {
            running: vec![one],
            received: 12_500_000,
            expected: Some(50_000_000),
        };
        assert_eq!(
            lines(&overall),
            [
                Line::heading("Downloading 1 package: 12.5 of 50.0 MB"),
                Line::part("  [######..................] hashicorp/aws v6.0.0 (12.5 of 50.0 MB)")
            ]
        );
        let overall = Overall {
            running: vec![one, running("me/own v1.0.0", 1_000_000, None)],
            received: 13_500_000,
            expected: None,
        };
        let texts: Vec<String> = lines(&overall).into_iter().map(|line| line.text).collect();
        assert_eq!(texts[0], "Downloading 2 packages: 13.5 MB");
        assert_eq!(texts[2], "  [????????????????????????] me/own v1.0.0 (1.0 MB)");
    }
}
