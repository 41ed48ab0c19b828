//! Common part of the types that keep the text of a value.

/// Implements the common part of a type that keeps its text.
macro_rules! text_type {
    ($ty:ident) => {
        impl $ty {
            /// Returns the text as it was written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.text
            }
        }

        impl std::fmt::Display for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.text)
            }
        }

        impl std::str::FromStr for $ty {
            type Err = $crate::model::ModelError;

            fn from_str(text: &str) -> Result<$ty, $crate::model::ModelError> {
                $ty::new(text)
            }
        }

        impl $crate::CustomType for $ty {
            type Base = String;

            fn from_base(base: String) -> Result<$ty, $crate::model::ModelError> {
                $ty::new(base)
            }

            fn to_base(&self) -> String {
                self.text.clone()
            }

            fn same(&self, other: &$ty) -> bool {
                self.meaning() == other.meaning()
            }
        }
    };
}
pub(super) use text_type;
