//! `pack` and `unpack`: executables with packages of providers and modules, and the contents of such packs.

mod build;
mod cli_config;
mod configuration;
mod gathered;
mod modules;
mod show;
mod unpack;
mod write_out;

pub(super) use show::bytes;

use std::path::{Path, PathBuf};

use pack::{Pack, PackError};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{VariableFlags, platforms};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub use unpack::COMMAND as UNPACK;

pub const COMMAND: Command = Command {
    path: "pack",
    about: "Make an executable that carries providers and modules",
    positional: "[PACK]",
    details: "Writes a copy of this executable that carries the packages of providers: of those that configurations need, in the \
      versions of their lock files, and of those that are named; with -modules, those of modules, too. Where it is copied to, they need \
      no installation and no network. \
      With -list or -verify it shows or checks what a pack carries; with -since and -update an update is carried over as a small \
      file. PACK is this executable unless it is named.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    out: Option<String>,
    configs: Vec<String>,
    modules: bool,
    include_config: bool,
    cli_config: Option<String>,
    providers: Vec<String>,
    named_modules: Vec<String>,
    platforms: Vec<String>,
    executable: Option<String>,
    from: Vec<String>,
    compress: String,
    sign: Option<String>,
    since: Option<String>,
    update: Option<String>,
    list: bool,
    verify: bool,
    trust: Option<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            out: flags.value("out", "FILE", "Write the pack, or the difference, to this file."),
            configs: flags.values(
                "config",
                "DIR",
                "Carry the providers that the configuration in this directory needs; the working directory if it is not given, unless \
                 only -provider, -module or -from say what is carried. May occur many times.",
            ),
            modules: flags.switch(
                "modules",
                false,
                "Carry the remote modules that these configurations call, too: in the versions that are installed there, else the \
                 newest that are allowed.",
            ),
            include_config: flags.switch(
                "include-config",
                false,
                "Carry these configurations, too: their directories without states, plans, private keys, what is installed, and what \
                 .terraformignore names. \"unpack -config=NAME DIR\" writes one out.",
            ),
            cli_config: flags.value(
                "cli-config",
                "FILE",
                "Carry this CLI configuration file, which counts where a machine has none. It must have no credentials. \
                 \"unpack -cli-config=FILE\" writes it out.",
            ),
            providers: flags.values(
                "provider",
                "SOURCE[@CONSTRAINT]",
                "Carry this provider, like acme/net@~>1.2: the newest version that is installed on this machine and meets the constraint, \
                 else the newest of its registry. May occur many times.",
            ),
            named_modules: flags.values(
                "module",
                "SOURCE[@CONSTRAINT]",
                "Carry this module, like acme/net/aws@~>1.2, and those that it calls. May occur many times.",
            ),
            platforms: platforms(flags),
            executable: flags.value(
                "executable",
                "FILE",
                "Pack with this executable of Monoform, of another platform or release, instead of this one.",
            ),
            from: flags.values(
                "from",
                "PACK",
                "Take over what this pack carries. May occur many times.",
            ),
            compress: flags.value_or(
                "compress",
                "LEVEL",
                "3",
                "How well to compress, from 1 (fast) to 22 (small).",
            ),
            sign: flags.value("sign", "KEYFILE", "Sign the pack with this Ed25519 key (PKCS #8, PEM)."),
            since: flags.value(
                "since",
                "PACK",
                "Write only what this older pack does not have.",
            ),
            update: flags.value(
                "update",
                "DIFFERENCE",
                "Write the new pack that a difference makes of PACK.",
            ),
            list: flags.switch("list", false, "Show what PACK carries."),
            verify: flags.switch("verify", false, "Compare every byte of PACK with its checksum."),
            trust: flags.value(
                "trust",
                "KEYFILE",
                "With -verify or -update: fail unless the pack is signed with this public key (PEM). MONOFORM_PACK_TRUST \
                 names the key if it is not given.",
            ),
            json: flags.switch("json", false, "With -list: output as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let modes = [arguments.list, arguments.verify, arguments.update.is_some()];
    if modes.iter().filter(|mode| **mode).count() > 1 {
        return Err(Failure::flag(
            "only one of -list, -verify and -update can be used at a time",
        ));
    }
    let reads = modes.contains(&true);
    let building = !arguments.configs.is_empty()
        || arguments.modules
        || arguments.include_config
        || arguments.cli_config.is_some()
        || !arguments.providers.is_empty()
        || !arguments.named_modules.is_empty()
        || !arguments.platforms.is_empty()
        || !arguments.from.is_empty()
        || arguments.executable.is_some()
        || arguments.sign.is_some()
        || arguments.since.is_some();
    if reads && building {
        return Err(Failure::flag(
            "-list, -verify and -update use a pack as it is, and no option that makes one",
        ));
    }
    if arguments.trust.is_some() && !(arguments.verify || arguments.update.is_some()) {
        return Err(Failure::flag("-trust needs -verify or -update"));
    }
    if arguments.json && !arguments.list {
        return Err(Failure::flag("-json needs -list"));
    }
    let pack = match arguments.positional.as_slice() {
        [] => session.builtins.executable.clone(),
        [pack] if reads => PathBuf::from(pack),
        _ => {
            return Err(Failure::usage(
                "Too many command line arguments",
                "PACK is the only argument, with -list, -verify or -update.",
            ));
        }
    };
    let out = arguments.out.as_deref().filter(|out| !out.is_empty()).map(Path::new);
    match (out, &arguments.update) {
        (Some(_), None) if arguments.list || arguments.verify => {
            Err(Failure::flag("-list and -verify write no file: -out has no meaning"))
        }
        (None, None) if arguments.list => show::list(session, &pack, arguments.json),
        (None, None) if arguments.verify => show::verify(session, &pack, arguments.trust.as_deref()),
        (None, _) => Err(Failure::flag("-out=FILE is needed: where to write the pack")),
        (Some(out), Some(difference)) => {
            let trust = arguments.trust.as_deref();
            build::update(session, &pack, Path::new(difference), out, trust)
        }
        (Some(out), None) => build::run(session, arguments, out),
    }
}

/// Opens a pack whose contents will be used.
fn open(session: &Session, path: &Path) -> Result<Pack, PackError> {
    Pack::open(path, &session.pack_conditions())
}

/// Returns the failure for a pack that cannot be read or made.
fn failed(summary: &str, error: &PackError) -> Failure {
    Failure::new(summary, format!("That failed: {error}."))
}
