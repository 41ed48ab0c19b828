//! What two sequences have in common.

/// A step from one sequence to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The elements at these places of both.
    Both(usize, usize),
    /// An element of the first that goes.
    Before(usize),
    /// An element of the second that comes.
    After(usize),
}

/// Beyond this many pairs, what lies between the common beginning and the common end is told as gone and come, since
/// finding what else is common takes time and space for each pair.
const LIMIT: usize = 4_000_000;

/// The steps from one sequence to another through the longest common subsequence. Between two common elements, `pairs`
/// says which others belong together nevertheless.
pub fn steps<T>(before: &[T], after: &[T], same: impl Fn(&T, &T) -> bool, pairs: impl Fn(&T, &T) -> bool) -> Vec<Step> {
    let start = before.iter().zip(after).take_while(|(a, b)| same(a, b)).count();
    let (b, a) = (&before[start..], &after[start..]);
    let end = b
        .iter()
        .rev()
        .zip(a.iter().rev())
        .take_while(|(x, y)| same(x, y))
        .count();
    let (b, a) = (&b[..b.len() - end], &a[..a.len() - end]);
    let mut out: Vec<Step> = (0..start).map(|i| Step::Both(i, i)).collect();
    let gap = |from: (usize, usize), to: (usize, usize), out: &mut Vec<Step>| {
        let (mut i, mut j) = from;
        while i < to.0 {
            if j < to.1 && pairs(&b[i], &a[j]) {
                out.push(Step::Both(start + i, start + j));
                j += 1;
            } else {
                out.push(Step::Before(start + i));
            }
            i += 1;
        }
        out.extend((j..to.1).map(|j| Step::After(start + j)));
    };
    let mut at = (0, 0);
    for (i, j) in common(b, a, same) {
        gap(at, (i, j), &mut out);
        out.push(Step::Both(start + i, start + j));
        at = (i + 1, j + 1);
    }
    gap(at, (b.len(), a.len()), &mut out);
    out.extend((0..end).map(|k| Step::Both(start + b.len() + k, start + a.len() + k)));
    out
}

/// The places of a longest common subsequence.
fn common<T>(b: &[T], a: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<(usize, usize)> {
    let width = a.len() + 1;
    if b.len().saturating_mul(a.len()) > LIMIT {
        return Vec::new();
    }
    let mut length = vec![0u32; (b.len() + 1) * width];
    for i in (0..b.len()).rev() {
        for j in (0..a.len()).rev() {
            length[i * width + j] = if same(&b[i], &a[j]) {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }
    let mut out = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < b.len() && j < a.len() {
        if same(&b[i], &a[j]) {
            out.push((i, j));
            i += 1;
            j += 1;
        } else if length[(i + 1) * width + j] >= length[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(before: &str, after: &str) -> Vec<Step> {
        let (b, a): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        steps(&b, &a, |x, y| x == y, |_, _| false)
    }

    #[test]
    fn what_stays_is_found() {
        use Step::{After, Before, Both};
        assert_eq!(
            run("abcde", "abXdef"),
            [
                Both(0, 0),
                Both(1, 1),
                Before(2),
                After(2),
                Both(3, 3),
                Both(4, 4),
                After(5)
            ]
        );
        assert_eq!(run("", "a"), [After(0)]);
        assert_eq!(run("abc", "ca"), [Before(0), Before(1), Both(2, 0), After(1)]);
    }
}
