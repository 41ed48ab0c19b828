//! Abstraction over representations of JSON documents, so that this crate's documents and those of a library share one
//! implementation.

/// A JSON document of any representation.
pub(super) trait Tree: Sized {
    /// Collection of an object's members.
    type Map: Members<Self>;

    fn node(&self) -> Node<'_, Self>;
}

/// A value of a document.
pub(super) enum Node<'a, T: Tree> {
    Null,
    Bool(bool),
    /// Digits as written.
    Number(&'a str),
    String(&'a str),
    Array(&'a [T]),
    Object(&'a T::Map),
}

pub(super) trait Members<T> {
    fn count(&self) -> usize;
    fn member(&self, name: &str) -> Option<&T>;
    fn members<'a>(&'a self) -> impl Iterator<Item = (&'a str, &'a T)>
    where
        T: 'a;
}
