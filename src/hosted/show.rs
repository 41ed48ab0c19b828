//! Display of plans that are saved on a server.

use std::path::Path;

use config::Config;
use engine::plan::Mode;
use provider::Schemas;
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics};
use tfe::{ApiError, Run, Server};
use views::json::read;

use crate::Context;
use crate::bookmark::Bookmark;
use crate::workspace::{self, Hosted};

const SUMMARY: &str = "Couldn't show cloud plan";

/// Parses the server's JSON document of a plan.
///
/// # Errors
/// The text is not JSON.
pub(crate) fn document(text: &[u8]) -> Result<Json, Diagnostic> {
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

/// Returns the configuration that was generated for imports of a plan, as the text of a file.
pub(crate) fn generated(document: &Json, tool: &str) -> String {
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

/// Reads the plan of a run with its schemas from the server's document. If this version cannot read the document, the error is a warning.
fn read_plan(document: &Json, run: &Run) -> Result<(read::PlanDocument, Schemas), Diagnostic> {
    let read = read::schemas(document).and_then(|schemas| Ok((read::plan(document, &schemas)?, schemas)));
    let (mut plan, schemas) = read.map_err(|why| {
        let detail = format!(
            "The server sent a plan that this version cannot read: {why}. The page of the run in the browser shows it."
        );
        Diagnostic::warning("The plan cannot be shown", detail)
    })?;
    // The document does not contain the mode, so it is taken from the run.
    plan.mode = match (run.is_destroy, run.refresh_only) {
        (true, _) => Mode::Destroy,
        (_, true) => Mode::RefreshOnly,
        _ => Mode::Normal,
    };
    Ok((plan, schemas))
}

/// Shows a plan as text, from the server's document.
pub(crate) fn human(context: &Context<'_>, document: &Json, run: &Run) {
    match read_plan(document, run) {
        Ok((plan, schemas)) => views::plan::show(&context.console.ui, plan.view(), &schemas, context.shown),
        Err(warning) => context.console.warn_now(warning),
    }
    context.console.ui.flush();
}

/// Shows the plan of a bookmark.
///
/// # Errors
/// The file or the plan cannot be read.
pub fn show(context: &Context<'_>, config: &Config, path: &Path, as_json: bool) -> Result<(), Diagnostics> {
    if let Some(problem) = crate::request::sensitive_values(context) {
        return Err(problem.into());
    }
    let saved = Bookmark::read(path)?;
    let hosted = workspace::selected(context, config)?.filter(Hosted::is_cloud);
    let hosted = hosted.ok_or_else(|| {
        failed(
            "the plan is kept on a server, and the configuration of this directory has no \"cloud\" block that leads there",
        )
    })?;
    let runtime = context.stores.plugins.runtime()?;
    runtime.block_on(of_run(context, &hosted, &saved, as_json))
}

fn failed(why: impl std::fmt::Display) -> Diagnostics {
    Diagnostic::error(SUMMARY, format!("The plan cannot be shown: {why}.")).into()
}

async fn of_run(context: &Context<'_>, hosted: &Hosted, saved: &Bookmark, as_json: bool) -> Result<(), Diagnostics> {
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
    let (run, included) = read.map_err(|e| unreadable("the record", &e, "log in as a user with the permission"))?;
    let plan = included.plan().ok_or_else(|| failed("its run has no plan"))?;
    if !matches!(&*plan.status, "finished" | "errored") {
        return Err(failed(format!("it is {} now", plan.status)));
    }
    let rights = match as_json {
        true => "for all of the plan, the rights of an administrator of the workspace are needed",
        false => "log in as a user with the permission",
    };
    // The display as text needs only the redacted document, for which fewer permissions are enough.
    let text = connection.plan_json(&plan.id, !as_json).await;
    let text = text.map_err(|e| unreadable("the plan", &e, rights))?;
    if as_json {
        context.console.ui.exact_line(String::from_utf8_lossy(&text).trim_end());
        return Ok(());
    }
    let document = document(&text)?;
    let (ui, style) = (&context.console.ui, context.console.ui.style());
    ui.line(style.yellow("To view this run in a browser, visit:"));
    let workspace = included.workspace().unwrap_or_else(|| hosted.workspace.clone());
    let of = Hosted {
        connection: connection.clone(),
        workspace,
    };
    ui.line(style.yellow(of.run_url(&run.id)));
    human(context, &document, &run);
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

/// Returns true if a server has logs and plans in JSON: HCP Terraform does, and Terraform Enterprise since February
/// 2023.
pub(crate) fn has_structured_output(server: &Server) -> bool {
    let Some(release) = &server.release else {
        return server.name == "HCP Terraform";
    };
    let date = release.trim_start_matches('v').split('-').next().unwrap_or_default();
    // Releases since 2025 have version numbers with dots instead of dates.
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
        let text = generated(&document, "Monoform");
        assert!(text.ends_with(" from \"i\"\nresource \"a\" \"b\" {}\n"), "{text}");
    }
}
