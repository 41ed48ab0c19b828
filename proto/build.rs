//! Compiles the protocol files with protox, so that building needs no protoc.

use std::error::Error;

const FILES: [&str; 5] = [
    "tfplugin5.proto",
    "tfplugin6.proto",
    "go_plugin.proto",
    "health.proto",
    "calls.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    tonic_prost_build::configure()
        .build_transport(false)
        // A message inside another is a part of the other's memory, not a copy of it.
        .bytes(".monoform")
        .compile_fds(descriptors)?;
    Ok(())
}
