//! The elements of XML answers, where their names are enough to find them: what the services of clouds say is flat.

/// The first element of this name in an XML text, with its content read as text.
#[must_use]
pub fn tag(text: &str, name: &str) -> Option<String> {
    tags(text, name).next()
}

/// All elements of this name.
pub fn tags<'t>(text: &'t str, name: &str) -> impl Iterator<Item = String> + 't {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let end = start + rest.get(start..)?.find(&close)?;
        let content = rest.get(start..end)?;
        rest = rest.get(end + close.len()..)?;
        Some(unescaped(content))
    })
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(end) = rest.find(';') else { break };
        let entity = &rest[1..end];
        let number = entity
            .strip_prefix('#')
            .and_then(|digits| match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => digits.parse().ok(),
            });
        match (entity, number.and_then(char::from_u32)) {
            ("amp", _) => out.push('&'),
            ("lt", _) => out.push('<'),
            ("gt", _) => out.push('>'),
            ("quot", _) => out.push('"'),
            ("apos", _) => out.push('\''),
            (_, Some(c)) => out.push(c),
            _ => out.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_and_read() {
        let text = "<A><Key>a&amp;b/&#x3c;&#62;</Key><Key>c</Key></A>";
        assert_eq!(tags(text, "Key").collect::<Vec<_>>(), ["a&b/<>", "c"]);
        assert_eq!(tag(text, "None"), None);
        assert_eq!(tag("<Key>&&lt;", "Key"), None);
        assert_eq!(unescaped("a & b &; &unknown; &"), "a & b &; &unknown; &");
    }
}
