//! The view of a JSON document that reading and writing need: one code for this crate's documents and for those of a library.

/// A JSON document.
pub(super) trait Tree: Sized {
    /// The members of an object.
    type Map: Members<Self>;

    fn node(&self) -> Node<'_, Self>;
}

/// One value of a document.
pub(super) enum Node<'a, T: Tree> {
    Null,
    Bool(bool),
    /// The digits as they are written.
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
