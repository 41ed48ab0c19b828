//! Options of a run, and errors for options that runs do not support.

use std::collections::BTreeMap;

use config::Module;
use config::values::{self, ValueSource};
use engine::plan::Mode;
use stores::generated::target_exists;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use tfe::RunOptions;
use views::verb::Verb;

use crate::Context;
use crate::run::{Remote, useless_flags};

/// Checks that a run supports the options of the command, and returns the options of the run.
///
/// # Errors
/// An option is not supported by runs, or the token has too few permissions.
pub(crate) fn check(remote: &Remote<'_>, module: &Module, sources: &mut SourceMap) -> Result<RunOptions, Diagnostics> {
    // Without the permission, the command cannot succeed with any options, so the permission is checked first.
    rights(remote)?;
    let mut problems = Diagnostics::new();
    problems.extend(useless_flags(&remote.request.useless));
    if remote.request.parallelism {
        problems.push(Diagnostic::error(
            "Custom parallelism values are currently not supported",
            "How many operations of a run happen at the same time is a setting of the server. Leave the option -parallelism out.",
        ));
    }
    if let Some(flag) = remote.request.only_local {
        problems.push(Diagnostic::error(
            "Option not supported by runs on the server",
            format!("The server makes and applies the plan, and has no such limit as {flag}. Leave the option out, or use a policy there."),
        ));
    }
    problems.extend(sensitive_values(remote.context));
    if remote.request.options.strict_addresses {
        problems.push(Diagnostic::error(
            "Strict addresses not supported",
            "A run on the server ignores addresses that match nothing: -strict-addresses has no meaning there.",
        ));
    }
    if let Some(partial) = &remote.request.options.partial_refresh {
        problems.push(Diagnostic::error(
            "Partial refresh not supported",
            format!(
                "A run on the server reads all objects, or none with -refresh=false. It has no such option as -refresh={}.",
                partial.part
            ),
        ));
    }
    if !remote.request.options.excludes.is_empty() {
        problems.push(Diagnostic::error(
            "Excluding resources is not supported",
            "A run on the server can be limited to resources with -target, but has no such option as -exclude.",
        ));
    }
    // Checked before the run starts, so that a run is not wasted if its result cannot be written.
    if remote.request.saved.is_none() {
        problems.extend(remote.request.generate.and_then(target_exists));
    }
    let variables = variables(remote, module, sources, &mut problems);
    if remote.hosted.is_cloud() {
        remote_plan_file(remote, &mut problems);
    } else {
        of_backend(remote, &mut problems, !variables.is_empty());
    }
    if problems.has_errors() {
        return Err(problems);
    }
    remote.context.console.show_now(&problems, sources);
    Ok(options(remote, variables))
}

/// Returns the error for `-show-sensitive`, which runs do not support because the server redacts sensitive values.
pub(crate) fn sensitive_values(context: &Context<'_>) -> Option<Diagnostic> {
    context.shown.sensitive.then(|| {
        Diagnostic::error(
            "Showing sensitive values is not supported",
            "The server gives the plan of a run without the sensitive values, so there is nothing that -show-sensitive could show. \
             Leave the option out.",
        )
    })
}

fn rights(remote: &Remote<'_>) -> Result<(), Diagnostics> {
    let workspace = &remote.hosted.workspace;
    let refused = |summary: &str, detail: &str| Err(Diagnostic::error(summary, detail).into());
    if remote.request.verb == Verb::Plan {
        if !workspace.can_queue_run {
            return refused(
                "Insufficient rights to generate a plan",
                "The token may not start plans in this workspace: it needs at least the right to plan.",
            );
        }
        if workspace.has_repository && remote.request.out.is_some() && remote.hosted.is_cloud() {
            return refused(
                "Saved plans not allowed for workspaces with a VCS connection",
                "The configuration of this workspace comes from a repository, so only runs that are started from there are applied.",
            );
        }
        return Ok(());
    }
    if !workspace.can_update && !workspace.can_queue_apply {
        return refused(
            "Insufficient rights to apply changes",
            "The token may not apply changes in this workspace: it needs at least the right to write.",
        );
    }
    if workspace.has_repository {
        return refused(
            "Apply not allowed for workspaces with a VCS connection",
            "The configuration of this workspace comes from a repository, so only runs that are started from there are applied.",
        );
    }
    Ok(())
}

/// Refuses a saved plan that was made locally.
fn remote_plan_file(remote: &Remote<'_>, problems: &mut Diagnostics) {
    if remote.request.saved_here {
        problems.push(Diagnostic::error(
            "Applying a saved local plan is not supported",
            "The file is a plan that was made on a machine, and applies of this workspace run on the server. Make the plan with \
             \"plan -out\" while the workspace is selected, or apply without a plan.",
        ));
    }
}

/// Adds errors for options that the backend `remote` does not support, or that need a newer server.
fn of_backend(remote: &Remote<'_>, problems: &mut Diagnostics, has_variables: bool) {
    let (request, settings) = (remote.request, &remote.hosted.connection.settings);
    let mut refuse = |given: bool, summary: &str, detail: String| {
        if given {
            problems.push(Diagnostic::error(summary, detail));
        }
    };
    let use_cloud = "The backend \"remote\" cannot do it. A \"cloud\" block in place of the backend can.";
    refuse(
        request.saved.is_some(),
        "Applying a saved plan is currently not supported",
        use_cloud.to_owned(),
    );
    refuse(
        request.out.is_some(),
        "Saving a generated plan is currently not supported",
        use_cloud.to_owned(),
    );
    refuse(
        request.generate.is_some(),
        "Generating configuration is not currently supported",
        use_cloud.to_owned(),
    );
    refuse(
        has_variables,
        "Run variables are currently not supported",
        format!(
            "The backend \"remote\" does not pass -var and -var-file on. Put the values into a file whose name ends with \
             .auto.tfvars, which is uploaded with the configuration, or into the variables of the workspace: \
             https://{}/app/{}/{}/variables",
            settings.hostname, settings.organization, remote.hosted.workspace.name
        ),
    );
    let too_old = |option: &str| format!("The host {} is too old for the option {option}.", settings.hostname);
    let (server, options) = (&remote.server, request.options);
    refuse(
        !options.targets.is_empty() && !server.is_at_least(2, 3),
        "Resource targeting is not supported",
        too_old("-target"),
    );
    refuse(
        !options.refresh && !server.is_at_least(2, 4),
        "Planning without refresh is not supported",
        too_old("-refresh=false"),
    );
    refuse(
        !options.force_replace.is_empty() && !server.is_at_least(2, 4),
        "Planning resource replacements is not supported",
        too_old("-replace"),
    );
    refuse(
        remote.mode == Mode::RefreshOnly && !server.is_at_least(2, 4),
        "Refresh-only mode is not supported",
        too_old("-refresh-only"),
    );
    refuse(
        request.verb == Verb::Refresh,
        "The \"refresh\" operation is not supported when using the \"remote\" backend",
        "Use \"apply -refresh-only\", which shows the changes before it writes them.".to_owned(),
    );
}

/// Returns the variables that flags, or files named by flags, set for this command. For a `cloud` block, the environment counts, too.
/// Variable files in the configuration are not included, because they are uploaded with it.
fn variables(
    remote: &Remote<'_>,
    module: &Module,
    sources: &mut SourceMap,
    problems: &mut Diagnostics,
) -> BTreeMap<String, String> {
    let collected = values::collect(module, remote.request.set);
    sources.extend(collected.sources);
    // For `backend "remote"`, `of_backend` refuses all variables, so errors in their values do not matter.
    if remote.hosted.is_cloud() {
        problems.extend(collected.diagnostics);
    }
    let named = |file: &str| remote.request.set.is_named(file);
    let mut out = BTreeMap::new();
    for (name, value) in collected.values {
        let sent = match &value.source {
            ValueSource::Environment => remote.hosted.is_cloud(),
            ValueSource::Flag => true,
            ValueSource::File(range) => named(&range.file),
            _ => false,
        };
        if let Some(given) = value.given.filter(|_| sent) {
            out.insert(name.to_string(), syntax::write::expression(&given));
        }
    }
    out
}

fn options(remote: &Remote<'_>, variables: BTreeMap<String, String>) -> RunOptions {
    let (request, options, cloud) = (remote.request, remote.request.options, remote.hosted.is_cloud());
    RunOptions {
        configuration: String::new(),
        refresh: options.refresh,
        // With -invoke, the local mode is refresh-only, but the server expects an ordinary plan.
        refresh_only: remote.mode == Mode::RefreshOnly && options.invoke.is_none(),
        destroy: remote.mode == Mode::Destroy,
        // Only sent for `cloud`, because servers of `backend "remote"` may not know these fields.
        auto_apply: cloud.then(|| remote.is_auto_approved()),
        save_plan: cloud.then_some(request.out.is_some()),
        generate_configuration: request.generate.is_some(),
        targets: options.targets.iter().map(ToString::to_string).collect(),
        replace: options.force_replace.iter().map(ToString::to_string).collect(),
        invoke: options.invoke.iter().map(ToString::to_string).collect(),
        variables: if cloud { variables } else { BTreeMap::new() },
    }
}
