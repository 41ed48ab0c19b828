//! A fake Kubernetes cluster: secrets and leases by the rules of the published interface.

use std::sync::Arc;

use support::kubernetes::{Cluster, NAMESPACE};

use crate::lab::{Lab, Tool, run};

pub const TESTS: &[(&str, fn())] = &[("large_states_are_in_parts_for_both_programs", parts)];

fn made() -> (Lab, Arc<Cluster>) {
    let cluster = Arc::new(Cluster::start());
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("config");
    std::fs::write(&path, cluster.kubeconfig()).expect("a file");
    let lab = Lab {
        ty: "kubernetes",
        settings: format!(
            "secret_suffix = \"team.x\"\nnamespace = \"{NAMESPACE}\"\nconfig_path = \"{}\"",
            path.display()
        ),
        environment: Vec::new(),
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new((cluster.clone(), dir)),
    };
    (lab, cluster)
}

pub fn lab() -> Lab {
    made().0
}

fn parts() {
    let (lab, cluster) = made();
    let (ours, theirs) = (lab.directory(Tool::Monoform), lab.directory(Tool::Terraform));
    // Random text hardly compresses, so the state exceeds the size of one secret.
    let mut seed = 1_u32;
    let noise: String = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'!' + u8::try_from(seed >> 24).unwrap_or_default() % 90)
    })
    .filter(|c| !"\"\\%$<>&".contains(*c))
    .take(3 << 20)
    .collect();
    let text = "output \"noise\" {\n  value = file(\"noise.txt\")\n}\n";
    for w in [&ours, &theirs] {
        w.write("noise.txt", &noise);
        w.write("noise.tf", text);
    }
    for (w, tool, other, by) in [
        (&ours, Tool::Monoform, &theirs, Tool::Terraform),
        (&theirs, Tool::Terraform, &ours, Tool::Monoform),
    ] {
        run(w, tool, &["apply", "-auto-approve"]).ok();
        let names = cluster.names("secrets");
        assert!(names.len() > 2, "{names:?}");
        assert_eq!(names[1], format!("{}-part-1", names[0]));
        let found = run(other, by, &["output", "-raw", "noise"]).ok();
        assert!(found.stdout == noise, "{tool:?}");
        run(other, by, &["destroy", "-auto-approve"]).ok();
        assert_eq!(cluster.names("secrets"), ["tfstate-default-team.x"]);
    }
}
