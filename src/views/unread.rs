//! Note on the objects and data sources that a plan did not read.

use engine::plan::Unread;

/// Returns the note, as one paragraph.
#[must_use]
pub fn text(unread: &Unread) -> String {
    let count = unread.instances.len();
    let all = count + unread.read;
    let option = &unread.option;
    if count == 0 {
        return format!("With -refresh={option}, all {all} objects and data sources were read.");
    }
    let were = if count == 1 { "was" } else { "were" };
    let mut text = format!(
        "With -refresh={option}, {count} of {all} objects and data sources {were} not read. The plan takes them as the state has them, so \
         changes made outside are not seen."
    );
    let mut times: Vec<&str> = unread
        .instances
        .iter()
        .filter_map(|one| one.last_read.as_deref())
        .collect();
    times.sort_unstable();
    match (times.first(), times.last()) {
        (Some(first), Some(last)) if first == last => text.push_str(&format!(" Last read: {first}")),
        (Some(first), Some(last)) => text.push_str(&format!(" Last read: from {first} to {last}")),
        _ => return text,
    }
    match count - times.len() {
        0 => text.push('.'),
        unknown => text.push_str(&format!("; of {unknown}, the time is not known.")),
    }
    text
}

#[cfg(test)]
mod tests {
    use engine::plan::UnreadInstance;

    use super::*;

    fn unread(times: &[Option<&str>]) -> Unread {
        let instance = |(i, time): (usize, &Option<&str>)| UnreadInstance {
            address: addrs::parse::resource_instance(&format!("a.b[{i}]")).unwrap(),
            last_read: time.map(str::to_owned),
        };
        Unread {
            option: "changed".into(),
            read: 2,
            instances: times.iter().enumerate().map(instance).collect(),
        }
    }

    #[test]
    fn note_has_counts_and_times() {
        let text = |times: &[Option<&str>]| text(&unread(times));
        assert_eq!(
            text(&[]),
            "With -refresh=changed, all 2 objects and data sources were read."
        );
        assert!(text(&[None]).starts_with("With -refresh=changed, 1 of 3 objects and data sources was not read."));
        assert!(text(&[None]).ends_with("are not seen."));
        let known = text(&[Some("2026-01-02T00:00:00Z"), None, Some("2026-01-01T00:00:00Z")]);
        assert!(
            known.ends_with(
                "Last read: from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z; of 1, the time is not known."
            ),
            "{known}"
        );
        assert!(text(&[Some("t"), Some("t")]).ends_with("Last read: t."));
    }
}
