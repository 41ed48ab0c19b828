//! Plans that are kept on a server, shown here.

use std::path::Path;

use engine::plan::Mode;
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics};
use tfe::{ApiError, Run, Server};
use views::json::read;
use views::program;

use super::bookmark::Bookmark;
use super::hosted::{self, Hosted};
use crate::session::Session;
use crate::workdir;

const SUMMARY: &str = "Couldn't show cloud plan";

/// The document that a server has of a plan.
///
/// # Errors
/// It is none.
pub(super) fn document(text: &[u8]) -> Result<Json, Diagnostic> {
    serde_json::from_slice(text).map_err(|e| {
        Diagnostic::error(
            "Failed to decode JSON plan",
            format!(
                "What the server says the plan is cannot be read: {}.",
                files::json_reason(e)
            ),
        )
    })
}

/// The blocks that were generated for what a plan imports, as the text of a file.
pub(super) fn generated(document: &Json) -> String {
    let tool = program::tool();
    let mut text = format!(
        "# __generated__ by {tool}\n# Please review these resources and move them into your main configuration files.\n"
    );
    for change in document["resource_changes"].as_array().into_iter().flatten() {
        let Some(block) = change["change"]["generated_config"].as_str().filter(|b| !b.is_empty()) else {
            continue;
        };
        text.push_str(&format!("\n# __generated__ by {tool}"));
        if let Some(id) = change["change"]["importing"]["id"].as_str() {
            text.push_str(&format!(" from {}", lang::render::quote(id)));
        }
        text.push('\n');
        text.push_str(block);
        text.push('\n');
    }
    text
}

/// Shows a plan for people, from the document that a server has of it.
pub(super) fn human(session: &Session, document: &Json, run: &Run) {
    let read = || {
        let schemas = read::schemas(document)?;
        let mut plan = read::plan(document, &schemas)?;
        plan.mode = match (run.is_destroy, run.refresh_only) {
            (true, _) => Mode::Destroy,
            (_, true) => Mode::RefreshOnly,
            _ => Mode::Normal,
        };
        Ok::<_, String>((plan, schemas))
    };
    match read() {
        Ok((plan, schemas)) => views::plan::show(&session.ui, &plan, &schemas, session.invocation.shown),
        Err(why) => {
            let warning = Diagnostic::warning(
                "The plan cannot be shown",
                format!(
                    "The server sent a plan that this version cannot read: {why}. The page of the run in the browser shows it."
                ),
            );
            session.warn_now(warning);
        }
    }
    session.ui.flush();
}

/// Shows the plan that a file leads to.
///
/// # Errors
/// The file or the plan cannot be read.
pub fn show(session: &Session, path: &Path, as_json: bool) -> Result<(), Diagnostics> {
    if let Some(problem) = super::request::sensitive_values(session) {
        return Err(problem.into());
    }
    let saved = Bookmark::read(path)?;
    let (project, problems) = workdir::read(session);
    if problems.has_errors() {
        return Err(problems);
    }
    let hosted = hosted::selected(session, &project.config)?.filter(Hosted::is_cloud);
    let hosted = hosted.ok_or_else(|| {
        failed(
            "the plan is kept on a server, and the configuration of this directory has no \"cloud\" block that leads there",
        )
    })?;
    let runtime = session.runtime()?;
    runtime.block_on(of_run(session, &hosted, &saved, as_json))
}

fn failed(why: impl std::fmt::Display) -> Diagnostics {
    Diagnostic::error(SUMMARY, format!("The plan cannot be shown: {why}.")).into()
}

async fn of_run(session: &Session, hosted: &Hosted, saved: &Bookmark, as_json: bool) -> Result<(), Diagnostics> {
    let (connection, here) = (&hosted.connection, &hosted.connection.settings.hostname);
    if saved.hostname != *here {
        return Err(failed(format!(
            "it is a run on {}, and the configuration names {here}",
            saved.hostname
        )));
    }
    let unreadable = |what: &str, e: &ApiError, rights: &str| match e {
        ApiError::NotFound => failed(format!(
            "{what} of the run {} is not there, or the token may not see it: {rights}",
            saved.run_id
        )),
        e => failed(format!("{what} of the run {} cannot be read: {e}", saved.run_id)),
    };
    let read = connection.run_with(&saved.run_id, "plan,workspace").await;
    let (run, included) = read.map_err(|e| unreadable("the record", &e, "log in as somebody who may"))?;
    let plan = included.plan().ok_or_else(|| failed("its run has no plan"))?;
    if !matches!(&*plan.status, "finished" | "errored") {
        return Err(failed(format!("it is {} now", plan.status)));
    }
    let rights = match as_json {
        true => "for all of the plan, the rights of an administrator of the workspace are needed",
        false => "log in as somebody who may",
    };
    let text = connection.plan_json(&plan.id, !as_json).await;
    let text = text.map_err(|e| unreadable("the plan", &e, rights))?;
    if as_json {
        session.ui.exact_line(String::from_utf8_lossy(&text).trim_end());
        return Ok(());
    }
    let document = document(&text)?;
    let (ui, style) = (&session.ui, session.ui.style());
    ui.line(style.yellow("To view this run in a browser, visit:"));
    let workspace = included.workspace().unwrap_or_else(|| hosted.workspace.clone());
    let of = Hosted {
        connection: connection.clone(),
        workspace,
    };
    ui.line(style.yellow(of.run_url(&run.id)));
    human(session, &document, &run);
    let status = run.status.name().replace('_', " ");
    ui.line(match run.is_confirmable {
        true => style.green(format!("Run status: {status} (confirmable)")),
        false => style.red(format!("Run status: {status} (not confirmable)")),
    });
    ui.line(match of.workspace.locked {
        true => style.red("Workspace is locked"),
        false => style.green("Workspace is unlocked"),
    });
    Ok(())
}

/// Whether a server has logs and plans in JSON: HCP Terraform does, and Terraform Enterprise does since February 2023.
pub(super) fn has_structured_output(server: &Server) -> bool {
    let Some(release) = &server.release else {
        return server.name == "HCP Terraform";
    };
    let date = release.trim_start_matches('v').split('-').next().unwrap_or_default();
    // Since 2025 releases have versions instead of dates.
    date.contains('.') || date.parse::<u32>().is_ok_and(|date| date >= 202_302)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structured_output_is_of_newer_servers() {
        let of = |name: &str, release: Option<&str>| {
            has_structured_output(&Server {
                name: name.to_owned(),
                release: release.map(str::to_owned),
                ..Server::default()
            })
        };
        assert!(of("HCP Terraform", None) && of("Terraform Enterprise", Some("v202302-1")));
        assert!(!of("Terraform Enterprise", Some("v202301-2")) && !of("Terraform Enterprise", None));
        assert!(of("Terraform Enterprise", Some("1.0.0")));
    }

    #[test]
    fn generated_blocks_are_written_with_what_they_import() {
        let document = json!({"resource_changes": [
            {"address": "a.b", "change": {"generated_config": "resource \"a\" \"b\" {}", "importing": {"id": "i"}}},
            {"address": "a.c", "change": {}},
        ]});
        let text = generated(&document);
        assert!(text.ends_with(" from \"i\"\nresource \"a\" \"b\" {}\n"), "{text}");
    }
}
