//! Panics: reported as a defect of this program, with a status of their own.

use std::io::Write as _;

/// The exit status after a panic.
pub const STATUS: u8 = 11;

/// Installs the hook that reports panics as defects.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        let backtrace = std::backtrace::Backtrace::force_capture();
        tracing::error!("panic: {info}\n{backtrace}");
        // Nothing is left to do if standard error is gone, too.
        let _ = writeln!(
            std::io::stderr(),
            "\n!!!!!!!!!!!!!!!!!!!!!!!!!!! MONOFORM CRASH !!!!!!!!!!!!!!!!!!!!!!!!!!!!\n\n\
             Monoform has a bug, and stopped here. What was done so far is saved as far as\npossible: look at the state \
             before you go on. Please report the bug with the\ntext below, and with the log of another run under \
             TF_LOG=trace if you can.\nDo not send secrets along.\n\nMonoform {} (Terraform {})\n{info}\n{backtrace}\n",
            crate::VERSION,
            crate::TERRAFORM_VERSION,
        );
    }));
}
