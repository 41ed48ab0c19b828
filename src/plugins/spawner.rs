//! Thread that spawns plugins and lives as long as the process.
//!
//! Linux can end a process together with its parent, kill -9 included, but the parent is the *thread* that spawned it:
//! a plugin spawned by a worker of a runtime would be killed with that runtime, or when the worker has been idle for a
//! while. Built-in plugins need none of this: they notice by themselves. On Windows, a job does it
//! ([`system::groups::tie`]). On other systems, external plugins outlive a core that is killed.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Returns the queue of the thread, which starts on first use; `None` if it cannot start.
fn thread() -> Option<Sender<Job>> {
    static THREAD: OnceLock<Option<Mutex<Sender<Job>>>> = OnceLock::new();
    let start = || {
        let (sender, jobs) = channel::<Job>();
        let work = move || jobs.into_iter().for_each(|job| job());
        let started = std::thread::Builder::new().name("spawner".to_owned()).spawn(work);
        started.ok().map(|_| Mutex::new(sender))
    };
    let sender = THREAD.get_or_init(start).as_ref()?;
    Some(sender.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// Spawns a command. If its file is open for writing, the call is repeated for up to a second.
pub async fn spawn(mut command: Command) -> io::Result<Child> {
    let Some(thread) = thread() else {
        return spawn_when_written(&mut command);
    };
    let (tell, told) = oneshot::channel();
    // The runtime of the caller owns the child, and waits for it.
    let runtime = Handle::current();
    let job = move || {
        let _runtime = runtime.enter();
        // If the caller has been dropped, the child is dropped, too, which kills it.
        let _ = tell.send(spawn_when_written(&mut command));
    };
    let _ = thread.send(Box::new(job));
    match told.await {
        Ok(spawned) => spawned,
        Err(_) => Err(io::Error::other("the thread that starts programs has ended")),
    }
}

fn spawn_when_written(command: &mut Command) -> io::Result<Child> {
    // If another thread forks, its child holds all open files until it executes its program. Meanwhile an executable that
    // was just written, such as an unpacked plugin, cannot be started.
    for _ in 0..50 {
        match command.spawn() {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::sleep(Duration::from_millis(20)),
            spawned => return spawned.inspect(tie),
        }
    }
    command.spawn().inspect(tie)
}

/// On Windows, makes the system end the process together with this one, however this one ends.
fn tie(child: &Child) {
    if let Some(id) = child.id() {
        system::groups::tie(id);
    }
}

/// Has the kernel kill the command's process when this one ends, and lets it ignore the hangup of the terminal.
///
/// Does nothing for a program that this machine cannot run, other than a script.
#[cfg(target_os = "linux")]
pub fn end_with_us(command: &mut Command) {
    // With `pre_exec`, the standard library starts the program through fork and execvp. If the kernel rejects the file format, execvp runs
    // the file as a shell script. Without `pre_exec`, the error is reported, so `pre_exec` is not used for such files.
    let own = std::env::current_exe().ok().and_then(|path| head(&path));
    let runs_here = head(std::path::Path::new(command.as_std().get_program())).is_some_and(|head| {
        head.starts_with(b"#!") || own.is_some_and(|own| machine(&head).is_some_and(|m| Some(m) == machine(&own)))
    });
    if !runs_here {
        return;
    }
    let us = rustix::process::getpid();
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // This process may have ended just before the setting took effect.
        if rustix::process::getppid() == Some(us) {
            Ok(())
        } else {
            Err(io::ErrorKind::Interrupted.into())
        }
    };
    // SAFETY: between fork and exec four system calls are made, on nothing but numbers; no memory is allocated and no lock
    // taken. The signals get no handler.
    #[allow(unsafe_code, reason = "there is no other way to ask for it in the new process")]
    unsafe {
        command.pre_exec(move || {
            use nix::sys::signal::{SigHandler, Signal, signal};
            // When a terminal is closed, each of its processes gets SIGHUP, but running operations are completed, and
            // need their plugins.
            signal(Signal::SIGHUP, SigHandler::SigIgn)?;
            // If this process runs in the background of a shell, SIGINT is ignored, also by its children. But
            // commands of provisioners are ended by SIGINT, so its default is restored.
            signal(Signal::SIGINT, SigHandler::SigDfl)?;
            ask()
        });
    }
}

/// Reads the first 20 bytes of a file; `None` if it cannot be read. If the file is shorter, the rest is zero.
#[cfg(target_os = "linux")]
fn head(path: &std::path::Path) -> Option<[u8; 20]> {
    let mut head = [0; 20];
    let mut file = std::fs::File::open(path).ok()?;
    // `read_exact` would fail for scripts that are shorter.
    let mut filled = 0;
    while let Some(rest) = head.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match io::Read::read(&mut file, rest).ok()? {
            0 => break,
            n => filled += n,
        }
    }
    Some(head)
}

/// Returns the parts of an ELF header that identify the machine: the size and order of its words, and the processor. `None` for other
/// files.
#[cfg(target_os = "linux")]
fn machine(head: &[u8; 20]) -> Option<(&[u8], &[u8])> {
    head.starts_with(b"\x7fELF").then(|| (&head[4..6], &head[18..20]))
}

#[cfg(not(target_os = "linux"))]
pub fn end_with_us(_command: &mut Command) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_is_still_open_for_writing_starts_when_it_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        std::fs::copy("/bin/true", &program).unwrap();
        let open = std::fs::OpenOptions::new().append(true).open(&program).unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(open);
        });
        let child = spawn(Command::new(&program)).await;
        assert!(child.unwrap().wait().await.unwrap().success());
        closing.join().unwrap();
    }

    /// The parent of a plugin is the spawner's thread, not a thread of the runtime, which ends earlier.
    #[test]
    fn the_thread_that_spawns_stays() {
        let runtime = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap()
        };
        let pid = runtime().block_on(async {
            tokio::spawn(async {
                let mut command = Command::new("/bin/sleep");
                command.arg("60");
                end_with_us(&mut command);
                let child = spawn(command).await.unwrap();
                let pid = child.id().unwrap();
                std::mem::forget(child);
                pid
            })
            .await
            .unwrap()
        });
        std::thread::sleep(Duration::from_millis(200));
        let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
        assert!(
            rustix::process::test_kill_process(pid).is_ok(),
            "it ended with its runtime"
        );
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
        assert!(!status.contains(") Z "), "it ended with its runtime: {status}");
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let status = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
        assert!(!status.contains(") Z "), "it ended by a hangup: {status}");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}
