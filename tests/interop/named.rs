//! The built-in `dns` provider and BIND: signed updates, read by `dig` from the same server.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::ports::ServerPort;
use support::{Workspace, which};

const ZONE: &str = "$TTL 300
@ IN SOA ns admin 1 3600 600 86400 60
@ IN NS ns
ns IN A 127.0.0.1
alias IN CNAME ns
";

/// Keys by algorithm. The first is that of `zone.test`.
const KEYS: [(&str, &str); 4] = [
    ("hmac-sha256", "c2hhMjU2LWtleS1zaGEyNTYta2V5LXNoYTI1Ni1rZXk="),
    ("hmac-sha512", "c2hhNTEyLWtleS1zaGE1MTIta2V5LXNoYTUxMi1rZXk="),
    ("hmac-sha1", "c2hhMS1rZXktc2hhMS1rZXktc2hhMS1rZXk="),
    ("hmac-md5", "bWQ1LWtleS1tZDUta2V5"),
];

/// A name server that lives as long as the test.
struct Server {
    process: Child,
    port: ServerPort,
    // Directory of the server's files.
    _dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Server {
    fn start() -> Server {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().display();
        let port = ServerPort::reserve();
        let mut config = format!(
            "options {{ directory \"{path}\"; listen-on port {} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             pid-file none; session-keyfile none; recursion no; dnssec-validation no; notify no; max-udp-size 512; }};\n\
             controls {{ }};\n",
            port.number()
        );
        for (algorithm, secret) in KEYS {
            config += &format!("key \"{algorithm}.\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n");
        }
        let all = KEYS
            .map(|(algorithm, _)| format!("grant {algorithm}. zonesub ANY;"))
            .join(" ");
        for (zone, policy) in [
            ("zone.test", all.as_str()),
            ("2.0.192.in-addr.arpa", all.as_str()),
            ("closed.test", "grant nobody. zonesub ANY;"),
        ] {
            std::fs::write(dir.path().join(zone), ZONE).expect("written");
            config += &format!("zone \"{zone}\" {{ type primary; file \"{zone}\"; update-policy {{ {policy} }}; }};\n");
        }
        let file = dir.path().join("named.conf");
        std::fs::write(&file, config).expect("written");
        let log = std::fs::File::create(dir.path().join("log")).expect("a log");
        let process = Command::new(which("named").expect("named"))
            .arg("-4")
            .arg("-g")
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("named starts");
        let server = Server {
            process,
            port,
            _dir: dir,
        };
        let begin = Instant::now();
        while server.dig(&["ns.zone.test", "A"]) != "127.0.0.1" {
            assert!(begin.elapsed() < Duration::from_secs(30), "named does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Returns the answer of the server in its short form, sorted.
    fn dig(&self, question: &[&str]) -> String {
        let output = Command::new("dig")
            .args([
                "@127.0.0.1",
                "-p",
                &self.port.number().to_string(),
                "+short",
                "+time=1",
                "+tries=1",
                "+ignore",
                "+tcp",
            ])
            .args(question)
            .output()
            .expect("dig runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(';')).collect();
        lines.sort_unstable();
        lines.join(" ")
    }

    /// Returns a provider configuration with the key of an algorithm.
    fn provider(&self, (algorithm, secret): (&str, &str), more: &str) -> String {
        format!(
            "provider \"dns\" {{\n  update {{\n    server = \"127.0.0.1\"\n    port = {}\n    key_name = \"{algorithm}.\"\n    \
             key_algorithm = \"{algorithm}\"\n    key_secret = \"{secret}\"\n    {more}\n  }}\n}}\n",
            self.port.number()
        )
    }
}

const EVERY_TYPE: &str = r#"
variable "last" {
  default = "2"
}
resource "dns_a_record_set" "all" {
  zone      = "zone.test."
  name      = "www"
  addresses = ["192.0.2.1", "192.0.2.${var.last}"]
}
resource "dns_aaaa_record_set" "all" {
  zone      = "zone.test."
  addresses = ["2001:DB8::1", "2001:db8::${var.last}"]
  ttl       = 60
}
resource "dns_cname_record" "all" {
  zone  = "zone.test."
  name  = "c"
  cname = "Www${var.last}.example.com."
}
resource "dns_mx_record_set" "all" {
  zone = "zone.test."
  mx {
    preference = 10
    exchange   = "a.example.com."
  }
  mx {
    preference = 20
    exchange   = "b${var.last}.example.com."
  }
}
resource "dns_ns_record_set" "all" {
  zone        = "zone.test."
  name        = "below"
  nameservers = ["ns1.example.com.", "ns${var.last}.example.com."]
}
resource "dns_ptr_record" "all" {
  zone = "2.0.192.in-addr.arpa."
  name = "5"
  ptr  = "www${var.last}.example.com."
}
resource "dns_srv_record_set" "all" {
  zone = "zone.test."
  name = "_sip._tcp"
  srv {
    priority = 1
    weight   = 2
    port     = 5060
    target   = "sip${var.last}.example.com."
  }
}
resource "dns_txt_record_set" "all" {
  zone = "zone.test."
  name = "text"
  txt  = ["é \\\"quoted\\\"", "version ${var.last}", join("", [for i in range(300) : "x"])]
}
"#;

const QUESTIONS: [(&str, &str); 7] = [
    ("www.zone.test", "A"),
    ("zone.test", "AAAA"),
    ("c.zone.test", "CNAME"),
    ("zone.test", "MX"),
    ("5.2.0.192.in-addr.arpa", "PTR"),
    ("_sip._tcp.zone.test", "SRV"),
    ("text.zone.test", "TXT"),
];

pub fn records_of_every_type_are_made_changed_and_deleted() {
    let server = Server::start();
    let config = server.provider(KEYS[0], "") + EVERY_TYPE;
    let w = Workspace::with(&[("main.tf", &config)]);
    let answers = || QUESTIONS.map(|(name, kind)| server.dig(&[name, kind]));
    let expected = |last: &str| {
        let long = format!("\"{}\" \"{}\"", "x".repeat(255), "x".repeat(45));
        [
            format!("192.0.2.1 192.0.2.{last}"),
            format!("2001:db8::1 2001:db8::{last}"),
            format!("Www{last}.example.com."),
            format!("10 a.example.com. 20 b{last}.example.com."),
            format!("www{last}.example.com."),
            format!("1 2 5060 sip{last}.example.com."),
            format!("\"\\195\\169 \\\"quoted\\\"\" \"version {last}\" {long}"),
        ]
    };
    w.run(&["apply", "-auto-approve"]).ok();
    assert_eq!(answers(), expected("2"));
    crate::nothing_to_do(&w);
    w.run(&["apply", "-auto-approve", "-var=last=3"]).ok();
    assert_eq!(answers(), expected("3"));

    // Imported records equal those that were created here.
    for (kind, id) in [
        ("dns_a_record_set", "www.zone.test."),
        ("dns_aaaa_record_set", "zone.test."),
        ("dns_cname_record", "c.zone.test."),
        ("dns_mx_record_set", "zone.test."),
        ("dns_ns_record_set", "below.zone.test."),
        ("dns_ptr_record", "5.2.0.192.in-addr.arpa."),
        ("dns_srv_record_set", "_sip._tcp.zone.test."),
    ] {
        let address = format!("{kind}.all");
        w.run(&["state", "rm", &address]).ok();
        w.run(&["import", "-var=last=3", &address, id]).ok();
    }
    let plan = w.run(&["plan", "-var=last=3", "-detailed-exitcode"]);
    assert!(plan.all().contains("No changes"), "{}", plan.all());
    w.run(&["destroy", "-auto-approve", "-var=last=3"]).ok();
    assert_eq!(answers(), [""; 7].map(str::to_owned));
}

pub fn every_algorithm_signs() {
    let server = Server::start();
    for (i, key) in KEYS.into_iter().enumerate() {
        let record = format!(
            "resource \"dns_a_record_set\" \"x\" {{\n  zone = \"zone.test.\"\n  name = \"n{i}\"\n  addresses = \
             [\"192.0.2.{i}\"]\n}}\n"
        );
        for transport in ["udp", "tcp4"] {
            let w = Workspace::with(&[(
                "main.tf",
                &(server.provider(key, &format!("transport = \"{transport}\"")) + &record),
            )]);
            w.run(&["apply", "-auto-approve"]).ok();
            assert_eq!(
                server.dig(&[&format!("n{i}.zone.test"), "A"]),
                format!("192.0.2.{i}"),
                "{}",
                key.0
            );
            w.run(&["destroy", "-auto-approve"]).ok();
        }
    }
}

pub fn an_answer_too_large_for_a_datagram() {
    let server = Server::start();
    let record = r#"
resource "dns_txt_record_set" "many" {
  zone = "zone.test."
  name = "many"
  txt  = [for i in range(20) : format("%03d %s", i, join("", [for j in range(200) : "x"]))]
}
"#;
    let w = Workspace::with(&[("main.tf", &(server.provider(KEYS[0], "") + record))]);
    w.run(&["apply", "-auto-approve"]).ok();
    crate::nothing_to_do(&w);
}

pub fn what_the_server_refuses() {
    let server = Server::start();
    let record = |zone: &str, name: &str| {
        format!(
            "resource \"dns_a_record_set\" \"x\" {{\n  zone = \"{zone}\"\n  name = \"{name}\"\n  addresses = \
             [\"192.0.2.1\"]\n}}\n"
        )
    };
    let (algorithm, _) = KEYS[0];
    let good = server.provider(KEYS[0], "");
    for (config, expected) in [
        (
            server.provider((algorithm, "d3Jvbmc="), "") + &record("zone.test.", "x"),
            "BADSIG",
        ),
        (
            good.replace("key_name = \"", "key_name = \"un") + &record("zone.test.", "x"),
            "BADKEY",
        ),
        (good.clone() + &record("closed.test.", "x"), "REFUSED"),
        (good.clone() + &record("elsewhere.test.", "x"), "NOTAUTH"),
        (good.clone() + &record("zone.test.", "alias"), "didn't get a A record"),
    ] {
        let w = Workspace::with(&[("main.tf", &config)]);
        w.run(&["apply", "-auto-approve"]).fails_with(&[expected]);
    }
    assert_eq!(server.dig(&["x.zone.test", "A"]), "");
    let w = Workspace::with(&[("main.tf", &(good + &record("zone.test.", "x")))]);
    for (id, expected) in [
        ("x.zone.test", "Not a fully-qualified DNS name"),
        ("x.elsewhere.test.", "REFUSED"),
    ] {
        w.run(&["import", "dns_a_record_set.x", id]).fails_with(&[expected]);
    }
}
