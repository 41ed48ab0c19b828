//! Compiles the protocol files with protox, so that building needs no protoc.

use std::error::Error;

const FILES: [&str; 4] = ["tfplugin5.proto", "tfplugin6.proto", "go_plugin.proto", "health.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    for file in FILES {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(FILES, ["."])?;
    tonic_prost_build::configure()
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}
