//! Type constraint expressions: `list(string)`, `object({ a = optional(number, 1) })`.
