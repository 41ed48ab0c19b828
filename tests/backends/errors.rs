//! Messages of each store about common mistakes, in one table. The servers are fakes: they answer as the real ones do, or do not answer. A
//! message names the problem, the server or object, and the remedy.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use libtest_mimic::Trial;
use support::ports::ClosedPort;
use support::server::{Reply, Request, Server};
use support::{Workspace, words};

use crate::lab::{RESOURCE, Tool, run};
use crate::server::proxy;

/// An answer to every request, and the expected texts of the message.
struct Fault {
    status: u16,
    body: &'static str,
    told: &'static [&'static str],
}

struct Store {
    ty: &'static str,
    /// Arguments of the block; `ADDRESS` is the server's URL, `HOST` its name and port, `SCHEME` its scheme.
    settings: &'static str,
    /// Additional variables, with the same placeholders.
    environment: &'static [(&'static str, &'static str)],
    /// Real names of the servers, if they are reached through a proxy.
    names: &'static [&'static str],
    /// Texts of the message for a port on which no server listens.
    nobody: &'static [&'static str],
    faults: &'static [Fault],
}

/// Services that the host of HCP Terraform offers.
const SERVICES: &str = r#"{"tfe.v2.1":"/api/v2/","state.v2":"/api/v2/"}"#;

const fn fault(status: u16, body: &'static str, told: &'static [&'static str]) -> Fault {
    Fault { status, body, told }
}

const STORES: &[Store] = &[
    Store {
        ty: "http",
        settings: "address = \"ADDRESS/state\"\nretry_wait_min = 1\nretry_max = 1",
        environment: &[],
        names: &[],
        nobody: &["ADDRESS/state"],
        faults: &[
            fault(401, "", &["username", "TF_HTTP_PASSWORD"]),
            fault(403, "", &["It refuses this user"]),
            fault(400, "no such project", &["Check the addresses", "no such project"]),
        ],
    },
    Store {
        ty: "s3",
        settings: "bucket = \"states\"\nkey = \"s\"\nregion = \"eu-central-1\"\nuse_path_style = true\nmax_retries = 1\n\
                   skip_credentials_validation = true\nskip_requesting_account_id = true\nendpoints = { s3 = \"ADDRESS\" }",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ],
        names: &[],
        nobody: &["ADDRESS/states"],
        faults: &[
            fault(
                403,
                "<Error><Code>InvalidAccessKeyId</Code></Error>",
                &["AWS_ACCESS_KEY_ID"],
            ),
            fault(
                403,
                "<Error><Code>SignatureDoesNotMatch</Code></Error>",
                &["secret key"],
            ),
            fault(400, "<Error><Code>ExpiredToken</Code></Error>", &["have expired"]),
            fault(
                403,
                "<Error><Code>AccessDenied</Code></Error>",
                &["permission", "states"],
            ),
            fault(
                403,
                "<Error><Code>RequestTimeTooSkewed</Code><Message>The difference is too large.</Message></Error>",
                &["clock of this machine", "The difference is too large"],
            ),
            fault(
                404,
                "<Error><Code>NoSuchBucket</Code></Error>",
                &[
                    "aws s3api create-bucket --bucket states --region eu-central-1",
                    "LocationConstraint=eu-central-1",
                ],
            ),
        ],
    },
    Store {
        ty: "gcs",
        settings: "bucket = \"states\"\naccess_token = \"t\"\nstorage_custom_endpoint = \"ADDRESS/storage/v1/\"",
        environment: &[],
        names: &[],
        nobody: &["ADDRESS/storage"],
        faults: &[
            fault(
                401,
                "{\"error\":{\"message\":\"Invalid Credentials\"}}",
                &["Invalid Credentials", "access_token"],
            ),
            fault(
                403,
                "{\"error\":{\"message\":\"no access\"}}",
                &["gcloud storage buckets add-iam-policy-binding gs://states"],
            ),
            fault(
                404,
                "{\"error\":{\"message\":\"The specified bucket does not exist.\"}}",
                &["gcloud storage buckets create gs://states"],
            ),
        ],
    },
    Store {
        ty: "azurerm",
        settings: "storage_account_name = \"teststates\"\ncontainer_name = \"states\"\nkey = \"s\"\naccess_key = \"a2V5\"",
        environment: &[],
        names: &["teststates.blob.core.windows.net"],
        nobody: &["teststates.blob.core.windows.net"],
        faults: &[
            fault(
                403,
                "<Error><Code>AuthenticationFailed</Code></Error>",
                &["ARM_ACCESS_KEY"],
            ),
            fault(
                403,
                "<Error><Code>AuthenticationFailed</Code><AuthenticationErrorDetail>Request date header too old: \
                 'x'</AuthenticationErrorDetail></Error>",
                &["clock of this machine", "Request date header too old"],
            ),
            fault(
                404,
                "<Error><Code>ContainerNotFound</Code></Error>",
                &["az storage container create --name states --account-name teststates"],
            ),
        ],
    },
    Store {
        ty: "consul",
        settings: "address = \"HOST\"\nscheme = \"SCHEME\"\npath = \"p\"",
        environment: &[],
        names: &[],
        nobody: &["HOST", "CONSUL_HTTP_ADDR"],
        faults: &[
            fault(403, "ACL not found", &["CONSUL_HTTP_TOKEN"]),
            fault(403, "Permission denied", &["key_prefix", "session_prefix"]),
            fault(401, "", &["CONSUL_HTTP_AUTH"]),
        ],
    },
    Store {
        ty: "kubernetes",
        settings: "secret_suffix = \"x\"\nnamespace = \"team\"\nhost = \"ADDRESS\"\ntoken = \"t\"",
        environment: &[],
        names: &[],
        nobody: &["ADDRESS"],
        faults: &[
            fault(401, "{\"message\":\"Unauthorized\"}", &["Log in to the cluster again"]),
            fault(
                403,
                "{\"message\":\"secrets is forbidden\"}",
                &["kubectl create role", "--namespace team"],
            ),
            fault(
                404,
                "{\"message\":\"namespaces \\\"team\\\" not found\"}",
                &["kubectl create namespace team"],
            ),
        ],
    },
    Store {
        ty: "oss",
        settings: "bucket = \"states\"\nregion = \"cn-beijing\"\nendpoint = \"ADDRESS\"",
        environment: &[("ALICLOUD_ACCESS_KEY", "id"), ("ALICLOUD_SECRET_KEY", "secret")],
        names: &[],
        nobody: &["ADDRESS"],
        faults: &[
            fault(
                403,
                "<Error><Code>InvalidAccessKeyId</Code></Error>",
                &["ALICLOUD_ACCESS_KEY"],
            ),
            fault(
                403,
                "<Error><Code>RequestTimeTooSkewed</Code></Error>",
                &["clock of this machine"],
            ),
            fault(
                404,
                "<Error><Code>NoSuchBucket</Code></Error>",
                &["aliyun oss mb oss://states --region cn-beijing"],
            ),
        ],
    },
    Store {
        ty: "cos",
        settings: "bucket = \"states-1250000000\"\nregion = \"ap-guangzhou\"",
        environment: &[("TENCENTCLOUD_SECRET_ID", "id"), ("TENCENTCLOUD_SECRET_KEY", "key")],
        names: &["*.cos.ap-guangzhou.myqcloud.com", "tag.tencentcloudapi.com"],
        nobody: &["states-1250000000.cos.ap-guangzhou.myqcloud.com"],
        faults: &[
            fault(
                403,
                "<Error><Code>SignatureDoesNotMatch</Code></Error>",
                &["TENCENTCLOUD_SECRET_KEY"],
            ),
            fault(
                403,
                "<Error><Code>RequestTimeTooSkewed</Code></Error>",
                &["clock of this machine"],
            ),
            fault(
                404,
                "<Error><Code>NoSuchBucket</Code></Error>",
                &["coscli mb cos://states-1250000000"],
            ),
        ],
    },
    Store {
        ty: "oci",
        settings: concat!(
            "bucket = \"states\"\nnamespace = \"space\"\nregion = \"us-ashburn-1\"\ntenancy_ocid = \"ocid1.tenancy.oc1..t\"\n",
            "user_ocid = \"ocid1.user.oc1..u\"\nfingerprint = \"11:22\"\nprivate_key = <<KEY\n",
            include_str!("../../builtin-plugins/state-oci/test-keys/new.pem"),
            "KEY\nprivate_key_password = \"secret\"\n",
        ),
        environment: &[(
            "CLIENT_HOST_OVERRIDES",
            "oci_object_storage.ObjectStorageClient=ADDRESS",
        )],
        names: &[],
        nobody: &["ADDRESS"],
        faults: &[
            fault(
                401,
                "{\"code\":\"NotAuthenticated\",\"message\":\"The clock is off.\"}",
                &["The clock is off", "fingerprint", "clock of this machine"],
            ),
            fault(
                403,
                "{\"code\":\"NotAllowed\",\"message\":\"not for you\"}",
                &["not for you", "needs a policy"],
            ),
            fault(
                404,
                "{\"code\":\"BucketNotFound\",\"message\":\"none\"}",
                &["oci os bucket create --name states --namespace space --region us-ashburn-1"],
            ),
            fault(
                404,
                "{\"code\":\"NamespaceNotFound\",\"message\":\"none\"}",
                &["oci os ns get"],
            ),
        ],
    },
    Store {
        ty: "remote",
        settings: "hostname = \"tfe.example.com\"\norganization = \"org\"\ntoken = \"t\"\nworkspaces {\n  name = \"only\"\n}",
        environment: &[],
        names: &["tfe.example.com"],
        nobody: &["tfe.example.com"],
        faults: &[
            fault(
                401,
                "",
                &["the token for tfe.example.com is not accepted", "log in again"],
            ),
            fault(
                403,
                "{\"errors\":[{\"title\":\"forbidden\",\"detail\":\"This token is for another organization\"}]}",
                &[
                    "organization \"org\"",
                    "forbidden",
                    "This token is for another organization",
                ],
            ),
            fault(
                404,
                "",
                &[
                    "organization \"org\" at host tfe.example.com not found",
                    "Check the names",
                ],
            ),
        ],
    },
];

/// Returns a working directory whose configuration uses the store as its backend, at `address`, a URL.
fn place(store: &Store, address: &str, proxy: Option<u16>, certificate: Option<&str>) -> Workspace {
    let (scheme, host) = address.split_once("://").expect("an address");
    let filled = |text: &str| {
        text.replace("ADDRESS", address)
            .replace("HOST", host)
            .replace("SCHEME", scheme)
    };
    let mut w = Workspace::with(&[("main.tf", RESOURCE)]);
    let block = format!(
        "terraform {{\n  backend \"{}\" {{\n{}\n  }}\n}}\n",
        store.ty,
        filled(store.settings)
    );
    w.write("backend.tf", &block);
    for (name, value) in store.environment {
        w = w.env(name, filled(value));
    }
    if let Some(port) = proxy {
        w = w
            .env("HTTPS_PROXY", format!("http://127.0.0.1:{port}"))
            .env("NO_PROXY", String::new());
    }
    if let Some(certificate) = certificate {
        w.write("cert.pem", certificate);
        let path = w.dir().join("cert.pem").display().to_string();
        w = w.env("SSL_CERT_FILE", path);
    }
    w
}

/// Returns the message of a command that needs the state, with one line for each paragraph.
fn told(w: &Workspace) -> String {
    let init = run(w, Tool::Monoform, &["init", "-input=false"]);
    let ran = match init.status {
        0 => run(w, Tool::Monoform, &["plan", "-input=false"]),
        _ => init,
    };
    assert_eq!(ran.status, 1, "{}", ran.all());
    words(&ran.stderr)
}

fn expect(told: &str, parts: &[&str], address: &str) {
    let host = address.split_once("://").map_or("", |(_, host)| host);
    for part in parts {
        let part = words(&part.replace("ADDRESS", address).replace("HOST", host));
        assert!(told.contains(&part), "{part:?} is not in\n{told}");
    }
}

fn port_of(server: &Server) -> u16 {
    let host = server.host();
    let port = host.rsplit(':').next().and_then(|port| port.parse().ok());
    port.expect("a port")
}

fn faults(store: &Store) {
    for Fault {
        status,
        body,
        told: parts,
    } in store.faults
    {
        let code = body.split("<Code>").nth(1).and_then(|rest| rest.split('<').next());
        let reply = move |request: &Request| match request.path() {
            // The list of services needs no authentication.
            "/.well-known/terraform.json" => Reply::json(SERVICES),
            _ => Reply::new(*status, *body).with("x-ms-error-code", code.unwrap_or("none")),
        };
        let direct = store.names.is_empty();
        let server = match direct {
            true => Server::http(reply),
            false => Server::https_as(store.names, reply),
        };
        let (through, certificate) = match direct {
            true => (None, None),
            false => (Some(proxy(port_of(&server))), Some(server.certificate.as_str())),
        };
        let w = place(store, &server.url(""), through, certificate);
        expect(&told(&w), parts, &server.url(""));
    }
}

/// Checks the messages for a port on which no server listens, and for a certificate that no trusted authority has signed.
fn unreachable(store: &Store) {
    let through = !store.names.is_empty();
    let refused: &[&str] = match through {
        true => &["does not connect to ", "HTTPS_PROXY"],
        false => &["refuses connections at port", "no server runs there"],
    };
    let untrusted = &[
        "certificate",
        "is not signed by anybody this machine trusts",
        "SSL_CERT_FILE",
    ];
    let closed = ClosedPort::new();
    let port = closed.port();
    let address = format!("http://127.0.0.1:{port}");
    let said = told(&place(store, &address, through.then_some(port), None));
    expect(&said, store.nobody, &address);
    expect(&said, refused, &address);

    let server = match through {
        true => Server::https_as(store.names, |_| Reply::status(200)),
        false => Server::https(|_| Reply::status(200)),
    };
    let by = through.then(|| proxy(port_of(&server)));
    let said = told(&place(store, &server.url(""), by, None));
    expect(&said, untrusted, "");
    let named = if through { store.nobody } else { &["ADDRESS"] };
    expect(&said, named, &server.url(""));
}

/// Starts a PostgreSQL server that refuses every login with this reason; returns its port.
fn refusing(code: &'static str, message: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut start = [0; 1024];
            if stream.read(&mut start).is_err() {
                continue;
            }
            let fields = format!("SFATAL\0VFATAL\0C{code}\0M{message}\0\0");
            let length = u32::try_from(fields.len() + 4).expect("a short message");
            let answer = [b"E".as_slice(), &length.to_be_bytes(), fields.as_bytes()].concat();
            // A client that has disconnected needs no answer.
            let _ = stream.write_all(&answer);
        }
    });
    port
}

fn postgres() {
    let at = |port: u16, more: &str| {
        let w = Workspace::with(&[("main.tf", RESOURCE)]);
        let address = format!("postgres://me:secret@127.0.0.1:{port}/states?{more}");
        w.write(
            "backend.tf",
            &format!("terraform {{\n  backend \"pg\" {{\n    conn_str = \"{address}\"\n  }}\n}}\n"),
        );
        let said = told(&w);
        assert!(!said.contains("secret"), "{said}");
        said
    };
    for (code, message, parts) in [
        (
            "28P01",
            "password authentication failed",
            &["password authentication failed", "PGPASSWORD"][..],
        ),
        ("28000", "no pg_hba.conf entry for host", &["pg_hba.conf"]),
        ("3D000", "database states does not exist", &["CREATE DATABASE"]),
        ("53300", "too many clients already", &["try again later"]),
        ("42501", "permission denied", &["Grant the user this privilege"]),
    ] {
        expect(&at(refusing(code, message), "sslmode=disable"), parts, "");
    }
    let closed = ClosedPort::new();
    let nobody = at(closed.port(), "sslmode=disable");
    expect(&nobody, &["Connection refused", "PGHOST", "127.0.0.1"], "");
}

pub fn trials() -> Vec<Trial> {
    let mut trials = vec![Trial::test("pg::mistakes_are_told_with_what_to_do", || {
        postgres();
        Ok(())
    })];
    for store in STORES {
        trials.push(Trial::test(
            format!("{}::mistakes_are_told_with_what_to_do", store.ty),
            || {
                faults(store);
                Ok(())
            },
        ));
        trials.push(Trial::test(
            format!("{}::servers_out_of_reach_are_told", store.ty),
            || {
                unreachable(store);
                Ok(())
            },
        ));
    }
    trials
}
