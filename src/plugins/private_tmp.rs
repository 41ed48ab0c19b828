//! Private `/tmp` for a process in whose root directory nothing can be written.
//!
//! Plugins in Go create a file for their socket and cannot run without it. If the process may mount file systems, it creates a mount
//! namespace of its own, and in it a root directory with the same contents and an empty `/tmp` in memory, which its plugins inherit.
//! Everything else stays unchanged, including read-only parts, and the rest of the system is not affected.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
};

use crate::launch::places_for_sockets;

/// Mounts a private `/tmp` if no directory for sockets can be written and this process may mount. The process must have
/// one thread only; it stays in its working directory.
pub fn mount_if_needed(working_dir: impl FnOnce() -> io::Result<PathBuf>) {
    if places_for_sockets().any(|dir| can_be_written(&dir)) {
        return;
    }
    match working_dir().and_then(|dir| mount(&dir)) {
        Ok(()) => tracing::debug!("no directory can be written: /tmp is a directory in memory"),
        Err(error) => tracing::debug!(%error, "no directory can be written, and none can be mounted"),
    }
}

fn can_be_written(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

fn mount(working_dir: &Path) -> io::Result<()> {
    // Only the calling thread is moved, so no other thread may exist yet.
    unshare(CloneFlags::CLONE_NEWNS)?;
    // The mounts must not propagate out of the namespace. This fails unless "/" is a mount point, and nothing
    // is mounted then.
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", propagation)?;

    let old = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let entries: Vec<fs::DirEntry> = fs::read_dir("/")?.collect::<io::Result<_>>()?;
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(&context, "mode", "0755")?;
    rustix::mount::fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let from_itself = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&root, "", CWD, "/", from_itself)?;
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if name == "tmp" {
            continue;
        }
        // A link cannot be a mount point, so it is copied.
        if kind.is_symlink() {
            let target = rustix::fs::readlinkat(&old, &name, Vec::new())?;
            rustix::fs::symlinkat(target, &root, &name)?;
            continue;
        }
        // A mount needs a mount point of the same kind: directory or file.
        if kind.is_dir() {
            rustix::fs::mkdirat(&root, &name, Mode::from_raw_mode(0o755))?;
        } else {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
            drop(rustix::fs::openat(&root, &name, flags, Mode::from_raw_mode(0o600))?);
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = rustix::mount::open_tree(&old, &name, flags)?;
        rustix::mount::move_mount(&tree, "", &root, &name, from_itself)?;
    }
    rustix::fs::mkdirat(&root, "tmp", Mode::from_raw_mode(0o755))?;
    // The new root covers the old one for later lookups only, so this process has to enter it.
    rustix::process::fchdir(&root)?;
    rustix::process::chroot(".")?;
    let attributes = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", "/tmp", "tmpfs", attributes, c"mode=1777")?;
    // The new root is read-only like the old one; the mounts in it keep their own flags.
    rustix::mount::mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | attributes, c"")?;
    rustix::process::chdir(working_dir)?;
    Ok(())
}
