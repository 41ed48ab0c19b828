//! S3, DynamoDB and STS, emulated by `moto_server`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use support::ports::ServerPort;

use crate::lab::{Lab, Tool, run};

pub const PROGRAMS: &[&str] = &["moto_server"];

pub const TESTS: &[(&str, fn())] = &[
    ("objects_have_the_keys_and_headers_of_terraform", keys),
    ("a_state_with_another_checksum_is_not_believed", digests),
    ("what_is_left_of_two_locks_is_released", halves),
    ("errors_are_reported_with_a_remedy", advice),
    ("roles_profiles_and_processes_give_credentials", credentials),
];

pub struct Server {
    child: Child,
    port: u16,
    _reserved: ServerPort,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Server {
        let reserved = ServerPort::reserve();
        let port = reserved.number();
        let child = Command::new(support::which("moto_server").expect("moto_server"))
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto_server starts");
        let server = Server {
            child,
            port,
            _reserved: reserved,
        };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "moto_server answers");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// Sends a request to a service and returns the whole answer.
    fn ask(&self, service: &str, line: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let request = format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\nAuthorization: AWS4-HMAC-SHA256 \
             Credential=test/20260101/us-east-1/{service}/aws4_request, SignedHeaders=host, Signature=0\r\n{headers}\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Makes a key of KMS; returns its ID.
    pub fn new_kms_key(&self) -> String {
        let headers = "X-Amz-Target: TrentService.CreateKey\r\nContent-Type: application/x-amz-json-1.1\r\n";
        let answer = self.ask("kms", "POST /", headers, "{}");
        let id = answer
            .split("\"KeyId\": \"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        id.unwrap_or_else(|| panic!("a key in {answer}")).to_owned()
    }

    fn dynamodb(&self, operation: &str, body: &str) -> String {
        let headers =
            format!("X-Amz-Target: DynamoDB_20120810.{operation}\r\nContent-Type: application/x-amz-json-1.0\r\n");
        let answer = self.ask("dynamodb", "POST /", &headers, body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }
}

/// Returns the server that all tests share.
pub fn server() -> Arc<Server> {
    static SERVER: OnceLock<Mutex<Weak<Server>>> = OnceLock::new();
    let mut shared = SERVER.get_or_init(Mutex::default).lock().expect("the server");
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    server
}

/// Returns the server, the name of a new bucket, and the settings for them.
fn place() -> (Arc<Server>, String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = server();
    let name = format!("states-{}", COUNT.fetch_add(1, Ordering::SeqCst));
    let answer = server.ask("s3", &format!("PUT /{name}"), "", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let address = format!("http://127.0.0.1:{}", server.port);
    let settings = format!(
        "bucket = \"{name}\"\nkey = \"a dir/s+t.tfstate\"\nregion = \"us-east-1\"\nuse_path_style = true\nendpoints = {{\n  s3 = \
         \"{address}\"\n  dynamodb = \"{address}\"\n  sts = \"{address}\"\n  iam = \"{address}\"\n}}"
    );
    (server, name, settings)
}

fn keys_in_environment() -> Vec<(String, String)> {
    [
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

fn made(server: Arc<Server>, settings: String) -> Lab {
    Lab {
        ty: "s3",
        settings,
        environment: keys_in_environment(),
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new(server),
    }
}

pub fn lab() -> Lab {
    let (server, _, settings) = place();
    made(server, format!("{settings}\nuse_lockfile = true"))
}

fn table(server: &Server, name: &str) {
    server.dynamodb(
        "CreateTable",
        &format!(
            "{{\"TableName\":\"{name}\",\"AttributeDefinitions\":[{{\"AttributeName\":\"LockID\",\"AttributeType\":\"S\"}}],\
             \"KeySchema\":[{{\"AttributeName\":\"LockID\",\"KeyType\":\"HASH\"}}],\"BillingMode\":\"PAY_PER_REQUEST\"}}"
        ),
    );
}

/// Returns a lab that uses both kinds of locks: a lock file, and an item in a DynamoDB table.
pub fn lab_with_table() -> Lab {
    let (server, name, settings) = place();
    table(&server, &name);
    made(
        server,
        format!("{settings}\nuse_lockfile = true\ndynamodb_table = \"{name}\""),
    )
}

fn keys() {
    let (server, name, settings) = place();
    let lab = made(
        server.clone(),
        format!("{settings}\nuse_lockfile = true\nencrypt = true\nacl = \"private\""),
    );
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    let list = server.ask("s3", &format!("GET /{name}?list-type=2"), "", "");
    let keys: Vec<&str> = list
        .split("<Key>")
        .skip(1)
        .filter_map(|part| part.split("</Key>").next())
        .collect();
    assert_eq!(keys, ["a dir/s+t.tfstate", "env:/dev/a dir/s+t.tfstate"]);
    let head = server
        .ask("s3", &format!("HEAD /{name}/a%20dir/s%2Bt.tfstate"), "", "")
        .to_lowercase();
    for header in ["content-type: application/json", "x-amz-server-side-encryption: aes256"] {
        assert!(head.contains(header), "{header}: {head}");
    }
}

fn digests() {
    let (server, name, settings) = place();
    table(&server, &name);
    let lab = made(server.clone(), format!("{settings}\ndynamodb_table = \"{name}\""));
    let w = lab.directory(Tool::Monoform);
    let init = run(&w, Tool::Monoform, &["init"]).ok();
    assert!(init.all().contains("Deprecated Parameter"), "{}", init.all());
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    let id = format!("{name}/a dir/s+t.tfstate-md5");
    let item = server.dynamodb(
        "GetItem",
        &format!("{{\"TableName\":\"{name}\",\"Key\":{{\"LockID\":{{\"S\":\"{id}\"}}}}}}"),
    );
    assert!(item.contains("\"Digest\""), "{item}");
    let wrong = "0".repeat(32);
    server.dynamodb(
        "PutItem",
        &format!(
            "{{\"TableName\":\"{name}\",\"Item\":{{\"LockID\":{{\"S\":\"{id}\"}},\"Digest\":{{\"S\":\"{wrong}\"}}}}}}"
        ),
    );
    run(&w, Tool::Monoform, &["plan"]).fails_with(&["does not have the expected content", &wrong, &id]);
}

/// Tests the leftovers of a process that is killed between the two locks while it takes or releases them.
fn halves() {
    let (server, name, settings) = place();
    table(&server, &name);
    let lab = made(
        server.clone(),
        format!("{settings}\nuse_lockfile = true\ndynamodb_table = \"{name}\""),
    );
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["init"]).ok();
    let id = "0a0b0c0d-0000-4000-8000-000000000000";
    let path = format!("{name}/a dir/s+t.tfstate");
    let lock = serde_json::json!({
        "ID": id, "Operation": "OperationTypeApply", "Info": "", "Who": "a@b", "Version": "1.11.4",
        "Created": "2026-01-01T00:00:00Z", "Path": path,
    })
    .to_string();
    let file = || {
        let answer = server.ask("s3", &format!("PUT /{name}/a%20dir/s%2Bt.tfstate.tflock"), "", &lock);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let item = |lock: &str| {
        let item = serde_json::json!({
            "TableName": name, "Item": {"LockID": {"S": path}, "Info": {"S": lock}},
        });
        server.dynamodb("PutItem", &item.to_string());
    };
    let unlock = || run(&w, Tool::Monoform, &["force-unlock", "-force", id]);
    for leave in [&file as &dyn Fn(), &|| item(&lock)] {
        leave();
        run(&w, Tool::Monoform, &["plan"]).fails_with(&["Error acquiring the state lock", id]);
        unlock().ok();
        run(&w, Tool::Monoform, &["plan"]).ok();
    }
    unlock().fails_with(&["is not locked"]);
    // The other half of the lock belongs to another run.
    file();
    item(&lock.replace(id, "ffffffff-0000-4000-8000-000000000000"));
    unlock().fails_with(&["has the ID \"ffffffff-0000-4000-8000-000000000000\""]);
}

fn advice() {
    let (server, name, settings) = place();
    let missing = settings.replace(&name, "there-is-none");
    for (settings, texts) in [
        (
            format!("{missing}\nuse_lockfile = true"),
            &["NoSuchBucket", "aws s3api create-bucket --bucket there-is-none"][..],
        ),
        (
            format!("{settings}\ndynamodb_table = \"none\""),
            &["aws dynamodb create-table --table-name none"],
        ),
        (
            format!("{settings}\nallowed_account_ids = [\"1\"]"),
            &["AWS account ID not allowed: 123456789012"],
        ),
        (
            settings.replace("us-east-1", "eu-nowhere-1"),
            &["eu-nowhere-1", "skip_region_validation"],
        ),
        (format!("{settings}\nkms_key_id = \"x\""), &["kms_key_id", "alias/"]),
        (
            settings.replace("a dir/", "/a dir/"),
            &["must not begin or end with a slash"],
        ),
    ] {
        let lab = made(server.clone(), settings);
        let w = lab.without();
        w.write("backend.tf", &lab.block(""));
        let init = run(&w, Tool::Monoform, &["init"]);
        let ran = if init.status == 0 {
            run(&w, Tool::Monoform, &["plan"])
        } else {
            init
        };
        ran.fails_with(texts);
    }
    let mut lab = made(server, settings);
    lab.environment.retain(|(name, _)| name == "AWS_EC2_METADATA_DISABLED");
    let w = lab.without();
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init"]).fails_with(&["No valid credential sources found", "AWS_PROFILE"]);
}

fn credentials() {
    let (server, _, settings) = place();
    let files = "shared_config_files = [\"config\"]\nshared_credentials_files = [\"credentials\"]";
    let role = "arn:aws:iam::123456789012:role/r";
    for (more, needs_keys) in [
        ("profile = \"keys\"".to_owned(), false),
        ("profile = \"role\"".to_owned(), false),
        ("profile = \"process\"".to_owned(), false),
        (
            format!("assume_role = {{\n  role_arn = \"{role}\"\n  duration = \"15m\"\n  tags = {{ a = \"b\" }}\n}}"),
            true,
        ),
        (
            format!(
                "assume_role_with_web_identity = {{\n  role_arn = \"{role}\"\n  web_identity_token_file = \"token\"\n}}"
            ),
            false,
        ),
    ] {
        let mut lab = made(server.clone(), format!("{settings}\n{files}\n{more}"));
        if !needs_keys {
            lab.environment.retain(|(name, _)| name == "AWS_EC2_METADATA_DISABLED");
        }
        let w = lab.without();
        w.write(
            "credentials",
            "[keys]\naws_access_key_id = A\naws_secret_access_key = B\n",
        );
        w.write(
            "config",
            &format!(
                "[profile role]\nrole_arn = {role}\nsource_profile = keys\n[profile process]\ncredential_process = echo \
                 '{{\"Version\":1,\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"B\"}}'\n"
            ),
        );
        w.write("token", "a.token.of.somebody");
        w.write("backend.tf", &lab.block(""));
        run(&w, Tool::Monoform, &["init"]).ok();
        run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    }
}
