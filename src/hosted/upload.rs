//! Upload of the configuration.

use std::path::{Path, PathBuf};

use syntax::Diagnostic;
use tfe::{Configuration, Purpose, Slug};
use views::verb::Verb;

use crate::run::{Ended, Remote, Step};
use views::wrap::wrapped;

impl Remote<'_> {
    /// Uploads the configuration for a run.
    pub(crate) async fn upload(&self) -> Step<Configuration> {
        let purpose = match (self.request.verb, self.request.out) {
            (Verb::Plan, None) => Purpose::Speculative,
            (Verb::Plan, Some(_)) => Purpose::SavedPlan,
            _ => Purpose::Apply,
        };
        let (connection, workspace) = (&self.hosted.connection, &self.hosted.workspace);
        let created = connection.create_configuration(workspace, purpose);
        let configuration = self.ask("Failed to create configuration version", created).await?;
        let root = root(self.context.working_dir, &workspace.working_directory);
        self.announce(&root);
        // Reading and compressing a large directory would block the runtime, and with it the handling of interrupts, so a separate thread
        // does it.
        let packed = tokio::task::spawn_blocking(move || Slug::create(&root));
        let slug = self.unless_stopped(packed).await?;
        let slug = slug.map_err(|e| Ended::with_error(format!("Failed to upload configuration files: {e}")))?;
        let slug = slug.map_err(|e| {
            Ended::from(Diagnostic::error(
                "Failed to upload configuration files",
                format!(
                    "{} cannot be read for the upload: {}.",
                    e.path.display(),
                    files::io_reason(&e.error)
                ),
            ))
        })?;
        if !slug.invalid_rules.is_empty() {
            let warning = Diagnostic::warning(
                "Invalid rules in .terraformignore",
                format!(
                    "These lines are no patterns, and are ignored:\n  {}",
                    slug.invalid_rules.join("\n  ")
                ),
            );
            self.context.console.warn_now(warning);
        }
        let uploaded = connection.upload_configuration(&configuration, slug.archive);
        self.ask("Failed to upload configuration files", uploaded).await?;
        Ok(configuration)
    }

    /// Tells the user which directory is uploaded, if it is not the working directory of the command.
    fn announce(&self, root: &Path) {
        let inside = &self.hosted.workspace.working_directory;
        if inside.is_empty() {
            return;
        }
        self.output.line(format!(
            "{}\n    {}\n",
            wrapped(
                &format!(
                    "The workspace expects its configuration in the directory {inside}. Therefore the directory above it is uploaded, \
                     without the files that .terraformignore names:"
                ),
                self.context.console.ui.width()
            ),
            root.display()
        ));
    }
}

/// Returns the directory to upload: `current` without the trailing `working_directory` of the workspace, or `current` itself if it
/// does not end in it.
fn root(current: &Path, working_directory: &str) -> PathBuf {
    let inside = Path::new(working_directory.trim_matches('/'));
    let inside: PathBuf = inside
        .components()
        .filter(|c| !matches!(c, std::path::Component::CurDir))
        .collect();
    // If the current directory does not end in the workspace's working directory, the current directory itself is uploaded.
    let mut root = current;
    if current.ends_with(&inside) {
        for _ in inside.components() {
            root = root.parent().unwrap_or(root);
        }
    }
    root.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_above_the_working_directory_of_the_workspace() {
        let of = |current: &str, inside: &str| root(Path::new(current), inside).display().to_string();
        assert_eq!(of("/a/b/c", ""), "/a/b/c");
        assert_eq!(of("/a/b/c", "b/c"), "/a");
        assert_eq!(of("/a/b/c", "./c/"), "/a/b");
        assert_eq!(of("/a/xc", "c"), "/a/xc");
        assert_eq!(of("/c", "c"), "/");
    }
}
