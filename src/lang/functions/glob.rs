//! Patterns of file names: `*`, `**`, `?`, `[a-z]`, `{a,b}`.

use std::fs;
use std::path::Path;

use files::mounts::Mounts;

/// How deep to look for files, and how many alternatives one pattern may have.
const MAX_DEPTH: usize = 256;
const MAX_ALTERNATIVES: usize = 4096;

/// The paths of files (not directories) under a directory that match the pattern, relative to it, with slashes.
pub(super) fn files(root: &Path, pattern: &str, mounts: Option<&Mounts>) -> Result<Vec<String>, String> {
    let mut search = Search {
        mounts,
        out: Vec::new(),
    };
    for alternative in alternatives(pattern)? {
        let parts: Vec<String> = alternative
            .split('/')
            .filter(|p| !p.is_empty() && *p != ".")
            .map(str::to_owned)
            .collect();
        for part in &parts {
            check(part)?;
        }
        search.descend(root, "", &parts, 0);
    }
    Ok(search.out)
}

/// The pattern with each of its `{a,b}` spelled out.
fn alternatives(pattern: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        let Some(start) = pattern.find('{') else {
            done.push(pattern);
            continue;
        };
        let mut depth = 0;
        let mut cuts = vec![start];
        let mut end = None;
        for (i, c) in pattern[start..].char_indices() {
            match c {
                '{' => depth += 1,
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        end = Some(start + i);
                        break;
                    }
                }
                ',' if depth == 1 => cuts.push(start + i),
                _ => {}
            }
        }
        let end = end.ok_or("syntax error in pattern")?;
        cuts.push(end);
        for pair in cuts.windows(2) {
            open.push(format!(
                "{}{}{}",
                &pattern[..start],
                &pattern[pair[0] + 1..pair[1]],
                &pattern[end + 1..]
            ));
        }
        if open.len() + done.len() > MAX_ALTERNATIVES {
            return Err("too many alternatives in pattern".into());
        }
    }
    Ok(done)
}

fn check(part: &str) -> Result<(), String> {
    let mut open = false;
    for c in part.chars() {
        match c {
            '[' => open = true,
            ']' => open = false,
            _ => {}
        }
    }
    if open {
        Err("syntax error in pattern".into())
    } else {
        Ok(())
    }
}

/// A search, with the paths that it has found.
struct Search<'m> {
    mounts: Option<&'m Mounts>,
    out: Vec<String>,
}

impl Search<'_> {
    fn descend(&mut self, dir: &Path, prefix: &str, parts: &[String], depth: usize) {
        let Some((part, rest)) = parts.split_first() else {
            return;
        };
        if depth > MAX_DEPTH {
            return;
        }
        if part == "**" {
            if rest.is_empty() {
                self.everything(dir, prefix, depth);
                return;
            }
            // No directory at all, or one and then again any number.
            self.descend(dir, prefix, rest, depth);
            for (name, is_dir) in self.entries(dir) {
                if is_dir {
                    self.descend(&dir.join(&name), &format!("{prefix}{name}/"), parts, depth + 1);
                }
            }
            return;
        }
        if part == ".." {
            self.descend(&dir.join(".."), &format!("{prefix}../"), rest, depth + 1);
            return;
        }
        for (name, is_dir) in self.entries(dir) {
            if !matches(&part.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if rest.is_empty() {
                if !is_dir && !self.out.contains(&path) {
                    self.out.push(path);
                }
            } else if is_dir {
                self.descend(&dir.join(&name), &format!("{path}/"), rest, depth + 1);
            }
        }
    }

    fn everything(&mut self, dir: &Path, prefix: &str, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        for (name, is_dir) in self.entries(dir) {
            let path = format!("{prefix}{name}");
            if is_dir {
                self.everything(&dir.join(&name), &format!("{path}/"), depth + 1);
            } else {
                self.out.push(path);
            }
        }
    }

    /// The names in a directory and whether they are directories; links are followed. A directory that cannot be read has none.
    fn entries(&self, dir: &Path) -> Vec<(String, bool)> {
        let Some(mounts) = self.mounts else {
            return on_disk(dir);
        };
        if let Some(entries) = mounts.entries(dir) {
            return entries.unwrap_or_default();
        }
        let above = mounts.names_above(dir);
        let mut entries = on_disk(dir);
        entries.retain(|(name, _)| !above.contains(name));
        entries.extend(above.into_iter().map(|name| (name, true)));
        entries
    }
}

fn on_disk(dir: &Path) -> Vec<(String, bool)> {
    let Ok(read) = fs::read_dir(dir) else { return Vec::new() };
    read.flatten()
        .filter_map(|entry| {
            let found = fs::metadata(entry.path()).ok()?;
            Some((entry.file_name().into_string().ok()?, found.is_dir()))
        })
        .collect()
}

/// Whether a name matches one part of a pattern.
fn matches(pattern: &[char], name: &[char]) -> bool {
    // The places to go on from when what follows the last star does not fit.
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[p..], name[n]),
            Some('\\') if p + 1 < pattern.len() => (pattern[p + 1] == name[n]).then_some(2),
            Some(c) => (*c == name[n]).then_some(1),
            None => None,
        };
        match (step, star) {
            (Some(width), _) => {
                p += width;
                n += 1;
            }
            (None, Some((after, at))) => {
                star = Some((after, at + 1));
                p = after;
                n = at + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// If the class at the beginning of the pattern contains the character: how long the class is.
fn class(pattern: &[char], c: char) -> Option<usize> {
    let mut i = 1;
    let negated = matches!(pattern.get(i), Some('^' | '!'));
    if negated {
        i += 1;
    }
    let mut found = false;
    let first = i;
    while let Some(low) = pattern.get(i) {
        if *low == ']' && i > first {
            return (found != negated).then_some(i + 1);
        }
        if let (Some('-'), Some(high)) = (pattern.get(i + 1), pattern.get(i + 2))
            && *high != ']'
        {
            found |= (*low..=*high).contains(&c);
            i += 3;
        } else {
            found |= *low == c;
            i += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_pattern() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a.tf", "b.txt", "sub/c.tf", "sub/deep/d.tf"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        for (pattern, expected) in [
            ("*.tf", vec!["a.tf"]),
            ("**", vec!["a.tf", "b.txt", "sub/c.tf", "sub/deep/d.tf"]),
            ("**/*.tf", vec!["a.tf", "sub/c.tf", "sub/deep/d.tf"]),
            ("*.{tf,txt}", vec!["a.tf", "b.txt"]),
            ("sub/*", vec!["sub/c.tf"]),
            ("[!a]*", vec!["b.txt"]),
            ("?.tf", vec!["a.tf"]),
            ("nothing/*", vec![]),
        ] {
            let mut found = files(dir.path(), pattern, None).unwrap();
            found.sort();
            assert_eq!(found, expected, "{pattern}");
        }
        assert!(files(dir.path(), "{a", None).is_err());
    }
}
