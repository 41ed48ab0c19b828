//! Limits of size and time: packages that are too large, servers that are too slow.

use crate::{requiring, workspace};
use support::Workspace;
use support::registry::{Registry, platform, zip};
use support::server::Server;

#[test]
fn a_package_that_unpacks_beyond_a_limit_is_refused_and_the_limit_can_be_set() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    anvil = { source = \"example.com/acme/anvil\" }\n  }\n}\n",
    )]);
    let dir = w.home().join(".terraform.d/plugins/example.com/acme/anvil");
    std::fs::create_dir_all(&dir).expect("a directory");
    let archive = zip(&[("terraform-provider-anvil_v1.0.0", &[0; 5000]), ("README", b"x")]);
    std::fs::write(
        dir.join(format!("terraform-provider-anvil_1.0.0_{}.zip", platform())),
        archive,
    )
    .expect("a file");
    let w = w.env("MONOFORM_MAX_UNPACKED_SIZE", "5000");
    w.run(&["init"]).fails_with(&[
        "larger than the 5000 bytes that are accepted",
        "MONOFORM_MAX_UNPACKED_SIZE",
    ]);
    assert!(!w.exists(".terraform.lock.hcl"));
    assert_eq!(
        std::fs::read_dir(w.dir().join(".terraform/providers")).map_or(0, Iterator::count),
        0
    );
    let w = w.env("MONOFORM_MAX_UNPACKED_SIZE", "much");
    w.run(&["init"]).fails_with(&["must be a size like 4GiB"]);
    let w = w
        .env("MONOFORM_MAX_UNPACKED_SIZE", "1M")
        .env("MONOFORM_MAX_UNPACKED_FILES", "1");
    w.run(&["init"]).fails_with(&[
        "more than the 1 entries that are accepted",
        "MONOFORM_MAX_UNPACKED_FILES",
    ]);
    let w = w.env("MONOFORM_MAX_UNPACKED_FILES", "2");
    w.run(&["init"]).ok();
}

#[test]
fn a_download_beyond_a_limit_is_refused_whether_its_size_is_announced_or_not() {
    for announced in [true, false] {
        let registry = Registry::new().with("acme/anvil", "1.0.0", "x");
        let server = Server::https(move |request| {
            let reply = registry.answer(request);
            match request.path().ends_with(".zip") && !announced {
                true => reply.drip(16, std::time::Duration::ZERO),
                false => reply,
            }
        });
        let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
        let w = w.env("MONOFORM_MAX_DOWNLOAD_SIZE", "20");
        w.run(&["init"]).fails_with(&[
            "larger than the 20 bytes that are accepted",
            "MONOFORM_MAX_DOWNLOAD_SIZE",
        ]);
        assert!(!w.exists(".terraform.lock.hcl"));
    }
}

#[test]
fn a_host_that_never_answers_is_named_at_once_and_given_up_with_the_way_without_a_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(std::mem::forget));
    let w = Workspace::with(&[
        (
            "main.tf",
            "terraform {\n  required_providers {\n    anvil = { source = \"silent.example/acme/anvil\" }\n  }\n}\n",
        ),
        (
            "../home/.terraformrc",
            &format!("host \"silent.example\" {{\n  services = {{\n    \"providers.v1\" = \"http://127.0.0.1:{port}/\"\n  }}\n}}\n"),
        ),
    ])
    .env("TF_REGISTRY_CLIENT_TIMEOUT", "3");
    let ran = w.run(&["init", "-no-color"]);
    assert!(
        ran.stdout
            .contains("- Finding latest version of silent.example/acme/anvil...\n"),
        "{}",
        ran.all()
    );
    assert!(
        ran.stdout.contains("- Waiting for 127.0.0.1 to answer...\n"),
        "{}",
        ran.all()
    );
    assert!(!ran.stdout.contains("trying again"), "{}", ran.all());
    ran.fails_with(&[
        "did not answer within 3 seconds",
        "init -mirror=DIR",
        "required_providers of the root module (main.tf line 3)",
    ]);
}
