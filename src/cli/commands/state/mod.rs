//! The `state` commands: inspecting the state, and changing it by hand.

mod diff;
mod edit;
mod history;
mod identities;
mod list;
mod mv;
mod pull;
mod push;
mod query;
mod replace_provider;
mod restore;
mod rm;
mod serve;
mod show;

pub use diff::COMMAND as DIFF;
pub use edit::nearest;
pub use history::COMMAND as HISTORY;
pub use identities::COMMAND as IDENTITIES;
pub use list::COMMAND as LIST;
pub use mv::COMMAND as MV;
pub use pull::COMMAND as PULL;
pub use push::COMMAND as PUSH;
pub use query::COMMAND as QUERY;
pub use replace_provider::COMMAND as REPLACE_PROVIDER;
pub use restore::COMMAND as RESTORE;
pub use rm::COMMAND as RM;
pub use serve::COMMAND as SERVE;
pub use show::COMMAND as SHOW;

use crate::outcome::Failure;
use crate::session::Session;
use views::wrap::wrapped;

fn no_state(session: &Session) -> Failure {
    let text = format!(
        "No state file was found!\n\nThis command works on a state, and the working directory has none. Run it in a directory whose \
         configuration {} has applied, or name a state file with -state.",
        session.ui.program.tool
    );
    let text = wrapped(&text, session.ui.err_width());
    Failure::text(format!("{}\n", session.ui.err_style().red(text)))
}
