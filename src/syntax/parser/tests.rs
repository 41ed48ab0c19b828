//! Trees, errors, robustness, and real files.

mod bulk;
