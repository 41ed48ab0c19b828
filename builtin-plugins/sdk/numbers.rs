//! Conversions between Terraform values and the numbers and tuples of Rust.

use cty::{Number, Step, Type, Value};

use crate::model::{Cty, ModelError};
use crate::type_rules::TypeRules;

/// Implements [`Cty`] for integer types. Values are read as 64-bit integers; the error for other numbers names the range of the type.
macro_rules! whole {
    ($($ty:ty: $read:ident),*) => { $(
        impl Cty for $ty {
            fn ty() -> Type {
                Type::Number
            }
            fn from_cty(value: &Value) -> Result<$ty, ModelError> {
                let number = Number::from_cty(value)?;
                // A number that does not fit is refused, because rounding would change it.
                number.$read().and_then(|n| <$ty>::try_from(n).ok()).ok_or_else(|| {
                    ModelError::new(format!(
                        "{number} is not a whole number from {} to {}",
                        <$ty>::MIN,
                        <$ty>::MAX
                    ))
                })
            }
            fn to_cty(&self) -> Value {
                // Every integer type for which this macro is used can be converted to 64 bits without loss.
                Value::number(Wide::from(*self))
            }
            fn rules() -> TypeRules {
                // Terraform has one type for all numbers, so the range is a rule of the Rust type.
                TypeRules::checked(|value| <$ty>::from_cty(value).err())
            }
        }
    )* };
}

/// A whole number of up to 64 bits, with or without a sign.
enum Wide {
    Signed(i64),
    Unsigned(u64),
}

macro_rules! wide {
    ($($ty:ty: $kind:ident),*) => { $(
        impl From<$ty> for Wide {
            fn from(n: $ty) -> Wide {
                Wide::$kind(n.into())
            }
        }
    )* };
}

impl From<Wide> for Number {
    fn from(n: Wide) -> Number {
        match n {
            Wide::Signed(n) => n.into(),
            Wide::Unsigned(n) => n.into(),
        }
    }
}

wide! { i8: Signed, i16: Signed, i32: Signed, u8: Unsigned, u16: Unsigned, u32: Unsigned, u64: Unsigned }
whole! { i8: to_i64, i16: to_i64, i32: to_i64, u8: to_u64, u16: to_u64, u32: to_u64, u64: to_u64 }

impl Cty for f64 {
    fn ty() -> Type {
        Type::Number
    }
    /// Reads the nearest `f64`, since few decimal fractions have an exact binary form.
    fn from_cty(value: &Value) -> Result<f64, ModelError> {
        let number = Number::from_cty(value)?;
        let near = number.to_f64();
        match near.is_finite() || number.is_infinite() {
            true => Ok(near),
            false => Err(ModelError::new(format!("{number} is too large for 64 bits"))),
        }
    }
    /// Writes the shortest decimal number that is read back as the same `f64`. NaN becomes null.
    fn to_cty(&self) -> Value {
        written(*self, &self.to_string())
    }
}

impl Cty for f32 {
    fn ty() -> Type {
        Type::Number
    }
    /// Reads the nearest `f32`, since few decimal fractions have an exact binary form.
    fn from_cty(value: &Value) -> Result<f32, ModelError> {
        let number = Number::from_cty(value)?;
        #[expect(clippy::cast_possible_truncation, reason = "the nearest number of 32 bits")]
        let near = number.to_f64() as f32;
        match near.is_finite() || number.is_infinite() {
            true => Ok(near),
            false => Err(ModelError::new(format!("{number} is too large for 32 bits"))),
        }
    }
    /// Writes the shortest decimal number that is read back as the same `f32`. NaN becomes null.
    fn to_cty(&self) -> Value {
        // The digits are those of the `f32`. As an `f64`, 0.1 would have more digits (0.10000000149011612).
        written(f64::from(*self), &self.to_string())
    }
    fn rules() -> TypeRules {
        TypeRules::checked(|value| f32::from_cty(value).err())
    }
}

fn written(n: f64, digits: &str) -> Value {
    let number = match n.is_infinite() {
        true => Number::from_f64(n),
        // The decimal text is parsed, so that 0.1 equals the 0.1 of a configuration. The double itself is only close to 0.1.
        false => Number::parse(digits),
    };
    number.map_or_else(|| Value::null(Type::Number), Value::number)
}

/// Implements [`Cty`] for tuples of Rust, whose elements may have different types. Each becomes a Terraform tuple.
macro_rules! tuples {
    ($($count:literal: ($($name:ident $i:tt),+)),+) => { $(
        impl<$($name: Cty),+> Cty for ($($name,)+) {
            fn ty() -> Type {
                Type::tuple([$($name::ty()),+])
            }
            fn from_cty(value: &Value) -> Result<Self, ModelError> {
                let items = value.as_seq().filter(|items| items.len() == $count);
                let items = items.ok_or_else(|| ModelError {
                    unknown: !value.is_known(),
                    ..ModelError::new(concat!("a tuple of ", $count, " elements is required"))
                })?;
                Ok(($($name::from_cty(&items[$i]).map_err(|e| e.under(Step::Index(Value::number($i as i64))))?,)+))
            }
            fn to_cty(&self) -> Value {
                Value::tuple(vec![$(self.$i.to_cty()),+])
            }
            fn rules() -> TypeRules {
                TypeRules::tuple(vec![$($name::rules()),+])
            }
        }
    )+ };
}

tuples! {
    1: (A 0),
    2: (A 0, B 1),
    3: (A 0, B 1, C 2),
    4: (A 0, B 1, C 2, D 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attr;

    fn number(text: &str) -> Value {
        Value::number(Number::parse(text).unwrap())
    }

    #[test]
    fn whole_numbers_outside_of_their_range_are_refused() {
        assert_eq!(u16::from_cty(&number("65535")), Ok(u16::MAX));
        assert_eq!(u64::from_cty(&number("18446744073709551615")), Ok(u64::MAX));
        assert_eq!(u64::MAX.to_cty(), number("18446744073709551615"));
        assert_eq!(i8::from_cty(&number("-128")), Ok(i8::MIN));
        for wrong in ["65536", "-1", "1.5"] {
            let error = u16::from_cty(&number(wrong)).unwrap_err();
            assert_eq!(error.message, format!("{wrong} is not a whole number from 0 to 65535"));
        }
        assert_eq!(Attr::<i32>::from_cty(&Value::null(Type::Number)), Ok(Attr::Null));
    }

    #[test]
    fn fractions_keep_the_digits_that_people_write() {
        for text in ["0.1", "0.30000000000000004", "1e300", "-2.5", "0"] {
            let value = number(text);
            assert_eq!(f64::from_cty(&value).unwrap().to_cty(), value, "{text}");
        }
        assert_eq!(0.1_f32.to_cty(), number("0.1"));
        assert!(f32::from_cty(&number("1e39")).is_err());
        assert!(f64::from_cty(&number("1e400")).is_err());
        assert!(f64::NAN.to_cty().is_null());
    }

    #[test]
    fn tuples_have_elements_of_several_types() {
        let pair = ("a".to_owned(), 7_u16);
        let value = pair.to_cty();
        assert_eq!(value.ty(), &Type::tuple([Type::String, Type::Number]));
        assert_eq!(<(String, u16)>::from_cty(&value), Ok(pair));
        let error = <(String, u16)>::from_cty(&Value::tuple(vec!["a".into(), Value::number(-1)])).unwrap_err();
        assert_eq!(error.path.to_string(), "[1]");
        assert!(
            <(String, u16)>::from_cty(&Value::unknown(<(String, u16)>::ty()))
                .unwrap_err()
                .unknown
        );
    }
}
