//! The multicall switch.

fn main() {}
