//! Tests of packs: made, read, changed by one byte, cut off, signed, updated.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use proptest::prelude::*;
use tempfile::TempDir;
use versions::Version;

use crate::signature::{PublicKey, SigningKey};
use crate::write::{ConfigurationContents, Contents, ModuleContents, Options, ProviderContents, entries};
use crate::{Conditions, Executable, Pack, PackError, TRUST, difference, index, write};

/// Directory with an executable and the contents that are packed with it.
struct Site {
    dir: TempDir,
}

const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
/// Public key of [`PRIVATE`]; both are from RFC 8032, section 7.1, the first test.
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
const OTHER: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n-----END PUBLIC KEY-----\n";

fn conditions(variables: &[(&str, String)]) -> Conditions {
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Conditions::from_environment(&variables.collect::<BTreeMap<_, _>>().into())
}

/// Opens a pack without checking its signer.
fn open(path: &Path) -> Result<Pack, PackError> {
    Pack::open(path, &conditions(&[]))
}

fn find(path: &Path) -> Result<Option<Pack>, PackError> {
    Pack::find(path, &conditions(&[]))
}

fn platform() -> Platform {
    "linux_amd64".parse().unwrap()
}

impl Site {
    fn new() -> Site {
        let site = Site {
            dir: tempfile::tempdir().unwrap(),
        };
        site.write("executable", "the executable's bytes");
        site.write("private.pem", PRIVATE);
        site.write("public.pem", PUBLIC);
        site.write("other.pem", OTHER);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn executable(&self) -> Executable {
        let path = self.path("executable");
        Executable {
            size: std::fs::metadata(&path).unwrap().len(),
            path,
            platform: platform(),
            version: "0.1.0".to_owned(),
        }
    }

    fn provider(&self, version: &str) -> ProviderContents<'static> {
        ProviderContents {
            address: Provider::parse("acme/demo").unwrap(),
            version: Version::parse(version).unwrap(),
            platform: platform(),
            hashes: ["h1:x".to_owned()].into(),
            files: entries(&self.path(&format!("provider-{version}"))).unwrap(),
        }
    }

    fn pack(&self, name: &str, contents: Contents<'_>, key: Option<&SigningKey>) -> Pack {
        let path = self.path(name);
        let mut out = std::fs::File::create(&path).unwrap();
        let options = Options { level: 3, signing: key };
        write::write(&mut out, &path, &self.executable(), contents, &options).unwrap();
        open(&path).unwrap()
    }

    /// Makes a pack with all kinds of contents.
    fn full(&self, name: &str, key: Option<&SigningKey>) -> Pack {
        self.write(
            "provider-1.0.0/terraform-provider-demo_v1.0.0",
            "#!/bin/sh\n".repeat(1000),
        );
        self.write("provider-1.0.0/LICENSE", "words");
        self.write("provider-1.0.0/docs/same", "words");
        self.write("provider-1.0.0/docs/empty", "");
        let contents = Contents {
            providers: vec![self.provider("1.0.0")],
            ..Contents::default()
        };
        self.pack(name, contents, key)
    }
}

fn tree(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: &write::Entry<'_>| (entry.path.clone(), std::fs::read(dir.join(&entry.path)).unwrap());
    entries(dir).unwrap().iter().map(read).collect()
}

#[test]
fn what_is_packed_is_unpacked_the_same() {
    let site = Site::new();
    let pack = site.full("pack", None);
    let provider = &pack.index().providers[0];
    assert_eq!(provider.executable().unwrap().path, "terraform-provider-demo_v1.0.0");
    let to = site.path("out");
    std::fs::create_dir(&to).unwrap();
    pack.unpack(&provider.files, &to).unwrap();
    assert_eq!(tree(&to), tree(&site.path("provider-1.0.0")));
    // Equal contents are stored once.
    let contents = pack.index().blobs.len();
    assert_eq!(contents, 3, "{:?}", pack.index());
    assert!(
        std::fs::read(site.path("pack"))
            .unwrap()
            .starts_with(b"the executable's bytes")
    );
    assert_eq!(pack.verify().unwrap().signed_by, None);
    // A file that exists is not overwritten.
    let error = pack.unpack(&provider.files, &to).unwrap_err();
    assert!(matches!(error, PackError::Write { .. }), "{error}");
}

#[test]
fn the_same_contents_give_the_same_bytes() {
    let site = Site::new();
    let first = site.full("one", None);
    site.full("two", None);
    let again = site.pack("three", Contents::from_pack(&first), None);
    let bytes = |name: &str| std::fs::read(site.path(name)).unwrap();
    assert!(bytes("one") == bytes("two"));
    assert!(
        bytes("one") == bytes("three"),
        "a pack made of what another one carries"
    );
    assert_eq!(first.identity(), again.identity());
}

#[test]
fn file_without_a_pack_is_recognized() {
    let site = Site::new();
    assert!(find(&site.path("executable")).unwrap().is_none());
    site.write("empty", "");
    assert!(find(&site.path("empty")).unwrap().is_none());
    assert!(matches!(open(&site.path("empty")), Err(PackError::NoPack(_))));
    // The executable of this test ends where its header declares.
    let own = std::env::current_exe().unwrap();
    assert!(find(&own).unwrap().is_none());
    // A pack that was cut off follows the executable.
    let pack = site.full("pack", None);
    let mut bytes = std::fs::read(&own).unwrap();
    let packed = std::fs::read(site.path("pack")).unwrap();
    let executable = usize::try_from(pack.index().executable.size).unwrap();
    bytes.extend(&packed[executable..packed.len() - 10]);
    site.write("cut", bytes);
    let error = find(&site.path("cut")).unwrap_err();
    assert!(error.to_string().contains("its end is missing"), "{error}");
}

#[test]
fn each_byte_counts() {
    let site = Site::new();
    let key = SigningKey::read(&site.path("private.pem")).unwrap();
    site.full("pack", Some(&key));
    let whole = std::fs::read(site.path("pack")).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        site.write("changed", bytes);
        let found = open(&site.path("changed")).and_then(|pack| pack.verify());
        let Err(error) = found else {
            panic!("byte {at} of {} is not noticed", whole.len());
        };
        assert!(error.to_string().contains("changed"), "byte {at}: {error}");
    }
    for length in [0, 1, 60, 100, whole.len() / 2, whole.len() - 1] {
        site.write("changed", &whole[..length]);
        let error = open(&site.path("changed")).unwrap_err();
        assert!(error.to_string().contains("changed"), "{length} bytes: {error}");
    }
}

#[test]
fn content_that_is_damaged_is_not_used() {
    let site = Site::new();
    let pack = site.full("pack", None);
    let mut bytes = std::fs::read(site.path("pack")).unwrap();
    let provider = &pack.index().providers[0];
    let blob = pack.index().blob_of(provider.executable().unwrap()).unwrap();
    let middle = usize::try_from(blob.offset + blob.length / 2).unwrap();
    bytes[middle] ^= 1;
    site.write("changed", bytes);
    let changed = open(&site.path("changed")).unwrap();
    let to = site.path("out");
    std::fs::create_dir(&to).unwrap();
    let error = changed.unpack(&provider.files, &to).unwrap_err().to_string();
    assert!(
        error.contains("terraform-provider-demo_v1.0.0 of registry.terraform.io/acme/demo 1.0.0"),
        "{error}"
    );
}

#[test]
fn signatures() {
    let site = Site::new();
    let key = SigningKey::read(&site.path("private.pem")).unwrap();
    let public = PublicKey::read(&site.path("public.pem")).unwrap();
    assert_eq!(key.public(), public);
    let signed = site.full("signed", Some(&key));
    assert_eq!(signed.verify().unwrap().signed_by, Some(public));
    site.full("unsigned", None);
    let trusting = |key: &str| conditions(&[(TRUST, site.path(key).display().to_string())]);
    let refused = |pack: &str, key: &str| Pack::open(&site.path(pack), &trusting(key)).unwrap_err().to_string();
    Pack::open(&site.path("signed"), &trusting("public.pem")).unwrap();
    for (pack, key, reason) in [
        ("signed", "other.pem", "not with"),
        ("unsigned", "public.pem", "it is not signed"),
        ("signed", "missing.pem", "missing.pem cannot be used"),
        ("signed", "private.pem", "private.pem cannot be used"),
    ] {
        let error = refused(pack, key);
        assert!(error.contains(reason) && error.contains(TRUST), "{error}");
    }
    // An option has precedence over the environment.
    let other = trusting("public.pem").with_key(Some(&site.path("other.pem")));
    let error = Pack::open(&site.path("signed"), &other).unwrap_err().to_string();
    assert!(error.contains("not with") && !error.contains(TRUST), "{error}");
    // An untrusted index is not even parsed, so its errors are not reported.
    let mut bytes = std::fs::read(site.path("unsigned")).unwrap();
    let length = bytes.len();
    let index = usize::try_from(u64::from_le_bytes(bytes[length - 64..length - 56].try_into().unwrap())).unwrap();
    bytes[index] = b'x';
    let sum = <sha2::Sha256 as sha2::Digest>::digest(&bytes[index..length - 64]);
    bytes[length - 40..length - 8].copy_from_slice(&sum);
    site.write("no-index", bytes);
    let error = open(&site.path("no-index")).unwrap_err().to_string();
    assert!(error.contains("its index is not valid"), "{error}");
    let error = refused("no-index", "public.pem");
    assert!(error.contains("it is not signed"), "{error}");
    // The signature belongs to another index.
    let mut bytes = std::fs::read(site.path("signed")).unwrap();
    let at = bytes.len() - 64 - 10;
    bytes[at] ^= 1;
    site.write("changed", bytes);
    let error = open(&site.path("changed")).unwrap_err().to_string();
    assert!(
        error.contains("its signature is not the signature of its index"),
        "{error}"
    );
    for (file, text) in [
        ("private.pem", "no block \"PUBLIC KEY\""),
        ("executable", "not in PEM form"),
    ] {
        let error = PublicKey::read(&site.path(file)).unwrap_err().to_string();
        assert!(error.contains(text) || error.contains("no block"), "{error}");
    }
}

#[test]
fn a_difference_makes_the_new_pack() {
    let site = Site::new();
    let old = site.full("old", None);
    // A large file is unchanged, the executable changes a little, and a provider is new.
    site.write("executable", "the executable's other bytes");
    site.write("provider-1.1.0/terraform-provider-demo_v1.1.0", "new".repeat(500));
    let key = SigningKey::read(&site.path("private.pem")).unwrap();
    let mut contents = Contents::from_pack(&old);
    contents.providers.push(site.provider("1.1.0"));
    let new = site.pack("new", contents, Some(&key));
    let path = site.path("difference");
    let mut out = std::fs::File::create(&path).unwrap();
    difference::write(&mut out, &path, &old, &new).unwrap();
    let mut made = Vec::new();
    difference::apply(&mut made, &site.path("made"), &old, &path).unwrap();
    assert!(made == std::fs::read(site.path("new")).unwrap());
    let error = difference::apply(&mut Vec::new(), &site.path("made"), &new, &path).unwrap_err();
    assert!(matches!(error, PackError::OtherPack { .. }), "{error}");
    let whole = std::fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        site.write("changed", bytes);
        let mut result = Vec::new();
        let applied = difference::apply(&mut result, &site.path("made"), &old, &site.path("changed"));
        // Some bits of a frame have no effect, so changing them does no harm.
        assert!(applied.is_err() || result == made, "byte {at} of {}", whole.len());
    }
    site.write("changed", &whole[..whole.len() - 1]);
    let error = difference::apply(&mut Vec::new(), &site.path("made"), &old, &site.path("changed")).unwrap_err();
    assert!(error.to_string().contains("its end is missing"), "{error}");
}

#[test]
fn what_cannot_be_packed_is_named() {
    let site = Site::new();
    site.write("links/main.tf", "");
    std::os::unix::fs::symlink("main.tf", site.path("links/same.tf")).unwrap();
    assert_eq!(entries(&site.path("links")).unwrap().len(), 2);
    std::os::unix::fs::symlink("/etc", site.path("links/elsewhere")).unwrap();
    let error = entries(&site.path("links")).unwrap_err().to_string();
    assert!(error.contains("leads out"), "{error}");
    let error = Executable::open(&site.path("executable"), true, &conditions(&[])).unwrap_err();
    assert!(matches!(error, PackError::NotMonoform(_)), "{error}");
    site.full("pack", None);
    let error = Executable::open(&site.path("pack"), false, &conditions(&[])).unwrap_err();
    assert!(matches!(error, PackError::PackOfPacks(_)), "{error}");
    // The executable of this test has the mark, since it contains the crate.
    let own = Executable::open(&std::env::current_exe().unwrap(), false, &conditions(&[])).unwrap();
    assert_eq!(own.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(own.platform, Platform::current());
}

#[test]
fn a_link_out_of_a_package_is_followed_to_its_program_only() {
    let site = Site::new();
    let mode = |name: &str, mode: u32| {
        std::fs::set_permissions(site.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    site.write("program", "bytes of a program");
    mode("program", 0o755);
    site.write("secret", "a secret");
    mode("secret", 0o600);
    let package = |name: &str, link: &str, target: &str| {
        site.write(&format!("{name}/README"), "");
        let link = site.path(name).join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(site.path(target), link).unwrap();
        entries(&site.path(name))
    };
    let found = package("linked", "terraform-provider-demo_v1.0.0", "program").unwrap();
    let files: Vec<(&str, bool)> = found.iter().map(|file| (file.path.as_str(), file.executable)).collect();
    assert_eq!(files, [("README", false), ("terraform-provider-demo_v1.0.0", true)]);
    for (name, link, target) in [
        ("no-program", "terraform-provider-demo_v1.0.0", "secret"),
        ("other-name", "LICENSE", "program"),
        ("below", "docs/terraform-provider-demo_v1.0.0", "program"),
        ("directory", "terraform-provider-demo_v1.0.0", "linked"),
    ] {
        let error = package(name, link, target).unwrap_err().to_string();
        assert!(error.contains(link) && error.contains("leads out"), "{name}: {error}");
    }
    let error = package("nowhere", "terraform-provider-demo_v1.0.0", "gone").unwrap_err();
    assert!(matches!(error, PackError::Read { .. }), "{error}");
    // Links to directories inside each other would be followed for ever.
    package("endless", "a", "endless").unwrap_err();
    let error = package("endless", "b", "endless").unwrap_err().to_string();
    assert!(
        error.contains("nested too deep") || error.contains("too many"),
        "{error}"
    );
}

impl Site {
    /// Makes a pack with a provider, a module, a configuration and a CLI configuration.
    fn with_modules(&self, name: &str) -> Pack {
        let first = self.full("first", None);
        self.write("module/main.tf", "words");
        self.write("module/parts/a/main.tf", "output \"a\" {}");
        self.write("module/.git/config", "not this");
        let link = |target: &str, name: &str| {
            let _ = std::os::unix::fs::symlink(target, self.path(name));
        };
        link("../main.tf", "module/parts/up.tf");
        link("parts/a", "module/a");
        link("/etc/passwd", "module/parts/outside");
        link("nothing", "module/parts/broken");
        let leave = |path: &str, is_dir: bool| is_dir && path == ".git";
        let (tree, outside) = write::tree(&self.path("module"), &leave).unwrap();
        let mut outside = outside;
        outside.sort();
        assert_eq!(outside, ["parts/broken", "parts/outside"]);
        let mut contents = Contents::from_pack(&first);
        contents.modules.push(ModuleContents {
            address: "https://example.com/m.zip".to_owned(),
            subdir: Some("parts/a".to_owned()),
            tree: tree.clone(),
        });
        contents.configurations.push(ConfigurationContents {
            name: "site".to_owned(),
            root: String::new(),
            tree,
        });
        contents.cli_config = Some(write::Source::File(self.path("module/main.tf")));
        self.pack(name, contents, None)
    }
}

#[test]
fn modules_and_configurations_are_unpacked_the_same_with_their_links() {
    let site = Site::new();
    let pack = site.with_modules("pack");
    pack.verify().unwrap();
    let index = pack.index();
    assert_eq!(index.format, index::FORMAT_WITH_MODULES);
    assert_eq!(index.blobs.len(), 4, "equal contents are there once: {:?}", index.blobs);
    let module = &index.modules[0];
    let to = site.path("out");
    std::fs::create_dir(&to).unwrap();
    pack.unpack_tree(&module.files, &module.links, &to).unwrap();
    assert_eq!(std::fs::read_link(to.join("a")).unwrap(), Path::new("parts/a"));
    assert_eq!(std::fs::read(to.join("parts/up.tf")).unwrap(), b"words");
    assert!(!to.join(".git").exists());
    assert_eq!(pack.cli_config().unwrap().unwrap(), b"words");
    assert_eq!(
        (index.configurations[0].name.as_str(), &index.configurations[0].files),
        ("site", &module.files)
    );
    // Contents of another pack are copied byte for byte.
    let again = site.pack("again", Contents::from_pack(&pack), None);
    assert_eq!(again.identity(), pack.identity());
    // Packs of providers alone can be read by earlier releases.
    assert_eq!(site.full("first", None).index().format, index::FORMAT);
}

#[test]
fn links_of_a_pack_stay_inside() {
    for (path, target, inside) in [
        ("a", "b", true),
        ("d/a", "../b/c", true),
        ("d/a", "..", true),
        ("a", "..", false),
        ("d/a", "../../b", false),
        ("d/a", "b/../../../c", false),
        ("a", "/etc", false),
        ("a", "", false),
        ("a", "./b", false),
    ] {
        assert_eq!(index::stays_inside(path, target), inside, "{path} -> {target}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Arbitrary bytes at the end of a file neither cause a panic nor are accepted as a pack.
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..300), magic in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut bytes = bytes;
        if magic {
            bytes.extend(b"MONOPACK");
        }
        std::fs::write(&path, bytes).unwrap();
        prop_assert!(!matches!(find(&path), Ok(Some(_))));
    }

    /// Files of any content are unpacked unchanged.
    #[test]
    fn any_files_are_carried(files in proptest::collection::btree_map("[a-z]{1,8}", proptest::collection::vec(any::<u8>(), 0..5000), 1..6)) {
        let site = Site::new();
        for (name, content) in &files {
            site.write(&format!("provider-1.0.0/{name}"), content);
        }
        let contents = Contents { providers: vec![site.provider("1.0.0")], ..Contents::default() };
        let pack = site.pack("pack", contents, None);
        pack.verify().unwrap();
        let to = site.path("out");
        std::fs::create_dir(&to).unwrap();
        pack.unpack(&pack.index().providers[0].files, &to).unwrap();
        prop_assert_eq!(tree(&to), files);
    }
}

#[test]
fn contents_are_unpacked_within_limits() {
    let site = Site::new();
    site.full("pack", None);
    let limited =
        |name: &str, value: &str| Pack::open(&site.path("pack"), &conditions(&[(name, value.to_owned())])).unwrap();
    let unpacked = |pack: &Pack, dir: &str| {
        std::fs::create_dir(site.path(dir)).unwrap();
        pack.unpack(&pack.index().providers[0].files, &site.path(dir))
    };
    unpacked(&limited("MONOFORM_MAX_UNPACKED_SIZE", "1M"), "enough").unwrap();
    for (name, value) in [
        ("MONOFORM_MAX_UNPACKED_SIZE", "10"),
        ("MONOFORM_MAX_UNPACKED_FILES", "1"),
    ] {
        let pack = limited(name, value);
        let error = unpacked(&pack, name).unwrap_err().to_string();
        assert!(error.contains("is too large") && error.contains(name), "{error}");
        assert_eq!(
            std::fs::read_dir(site.path(name)).unwrap().count(),
            0,
            "nothing is written"
        );
        assert!(pack.check_all_limits().is_err());
    }
    // One small content is used by many packages, each of which is small enough.
    site.write("provider-2.0.0/terraform-provider-demo_v2.0.0", "0".repeat(100_000));
    let mut contents = Contents::default();
    for patch in 0..20 {
        let version = Version::parse(&format!("2.0.{patch}")).unwrap();
        contents.providers.push(ProviderContents {
            version,
            ..site.provider("2.0.0")
        });
    }
    site.pack("bomb", contents, None);
    let pack = Pack::open(
        &site.path("bomb"),
        &conditions(&[("MONOFORM_MAX_UNPACKED_SIZE", "200000".to_owned())]),
    )
    .unwrap();
    let files = &pack.index().providers[0].files;
    pack.check_limits(files).unwrap();
    let error = pack.check_all_limits().unwrap_err().to_string();
    assert!(error.contains("MONOFORM_MAX_UNPACKED_SIZE"), "{error}");
    let invalid = Pack::open(
        &site.path("pack"),
        &conditions(&[("MONOFORM_MAX_UNPACKED_SIZE", "much".to_owned())]),
    );
    let error = invalid.unwrap_err().to_string();
    assert!(error.contains("must be a size"), "{error}");
}

#[test]
fn an_index_of_any_size_is_refused_before_it_is_read() {
    let site = Site::new();
    site.full("pack", None);
    let bytes = std::fs::read(site.path("pack")).unwrap();
    let mut trailer = bytes[bytes.len() - 64..].to_vec();
    let offset = u64::from_le_bytes(trailer[..8].try_into().unwrap());
    let length: u64 = 175 << 20;
    trailer[8..16].copy_from_slice(&length.to_le_bytes());
    site.write("large", bytes);
    let file = std::fs::File::options().write(true).open(site.path("large")).unwrap();
    // A hole in the file reads as zeros. If it were read, the error would be about its checksum.
    file.set_len(offset + length + 64).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &trailer, offset + length).unwrap();
    let error = open(&site.path("large")).unwrap_err().to_string();
    assert!(
        error.contains("its index has 175 MiB") && error.contains("64 at most"),
        "{error}"
    );
}
