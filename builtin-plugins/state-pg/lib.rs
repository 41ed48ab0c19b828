//! The state store `pg`: states as rows of a table in PostgreSQL.
//!
//! Each row of the table `states` is a workspace: `id`, `name`, `data`. The lock of a workspace is an advisory lock on the ID of its row.
//! PostgreSQL releases it when the session ends, so a run uses one session. IDs come from one sequence for all schemas of a database,
//! because advisory locks apply to the whole database.
//!
//! If a workspace has no row when it is locked, a row with an empty state is created. If nothing is written, the row is removed with the
//! lock. The row is created under the creation locks of Terraform (-1, for the whole database) and OpenTofu (a number for each schema).
//! They are held only for that statement: Terraform holds its lock longer, and so makes all other first applies wait.
//!
//! With `layout = "objects"` there is a row for each object of a state instead ([`objects`]).
//!
//! [`settings`] has the connection parameters, from the connection string and the environment. [`session`] is the connection, and
//! [`client`] has the statements.

mod client;
mod objects;
mod session;
mod settings;
mod tls;

use std::sync::Arc;

use monoform_sdk::schema::optional;
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Result, StateClient, StateStore, async_trait, env};
use store_client::guard::Guarded;

/// Name of the store, which is the backend type.
pub const NAME: &str = "pg";

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The connection string: a `postgres://` URL, or pairs of the form `key=value`.
    #[member(optional())]
    pub conn_str: Attr<String>,
    /// The PostgreSQL schema in which the table of states is.
    #[member(optional())]
    pub schema_name: Attr<String>,
    /// The layout of the database: `states`, a whole state in each row, as in Terraform; or `objects`, a row for each object,
    /// with the history of all changes.
    #[member(optional())]
    pub layout: Attr<String>,
    /// If true, a copy of each state is kept in the data directory, and only later changes are read from the server. For the layout
    /// `objects`.
    #[member(optional())]
    pub local_copy: Attr<bool>,
    /// If true, the PostgreSQL schema must exist already, and is not created.
    #[member(optional())]
    pub skip_schema_creation: Attr<bool>,
    /// If true, the table must exist already, and is not created.
    #[member(optional())]
    pub skip_table_creation: Attr<bool>,
    /// If true, the index must exist already, and is not created.
    #[member(optional())]
    pub skip_index_creation: Attr<bool>,
}

/// Layout of the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One row for each state, as in Terraform.
    States,
    /// One row for each object, and a history.
    Objects,
}

impl Layout {
    fn of(config: &Config) -> Result<Layout> {
        match config.layout.known().map(String::as_str) {
            None | Some("states") => Ok(Layout::States),
            Some("objects") => Ok(Layout::Objects),
            Some(other) => Err(Diagnostic::error(
                "Invalid PostgreSQL backend configuration",
                format!("There is no layout {other:?}. The layouts are \"states\", the default, and \"objects\"."),
            )
            .at_attribute("layout")
            .into()),
        }
    }

    /// Returns the default schema. Each layout has its own, because their tables have different columns.
    fn default_schema(self) -> &'static str {
        match self {
            Layout::States => "terraform_remote_state",
            Layout::Objects => "monoform_state",
        }
    }
}

/// Name of the schema, and which missing parts may be created.
pub(crate) struct Tables {
    pub schema: String,
    pub create_schema: bool,
    pub create_table: bool,
    pub create_index: bool,
}

fn skips(attribute: &str, value: &Attr<bool>) -> Result<bool> {
    if let Some(given) = value.known() {
        return Ok(*given);
    }
    let variable = format!("PG_{}", attribute.to_uppercase());
    let Some(text) = env::var(&variable) else {
        return Ok(false);
    };
    gotext::boolean(&text).ok_or_else(|| {
        let detail = format!("The environment variable {variable} must be true or false, and not {text:?}.");
        Diagnostic::error("Invalid PostgreSQL backend configuration", detail)
            .at_attribute(attribute)
            .into()
    })
}

/// Returns the text of an argument if it is not empty, or else of a variable.
fn text(value: &Attr<String>, variable: &str) -> Option<String> {
    let given = value.known().filter(|text| !text.is_empty()).cloned();
    given.or_else(|| env::var(variable))
}

#[must_use]
pub fn store() -> impl StateStore {
    Postgres
}

struct Postgres;

#[async_trait]
impl StateStore for Postgres {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        match Layout::of(config) {
            Err(problems) => problems,
            Ok(Layout::States) if config.local_copy.known() == Some(&true) => Diagnostic::error(
                "Invalid PostgreSQL backend configuration",
                "Copies of states need rows of objects: set layout = \"objects\", or remove local_copy.",
            )
            .at_attribute("local_copy")
            .into(),
            Ok(_) => Diagnostics::default(),
        }
    }

    async fn configure(&self, config: Config) -> Result<Arc<dyn StateClient>> {
        let layout = Layout::of(&config)?;
        let tables = Tables {
            schema: text(&config.schema_name, "PG_SCHEMA_NAME").unwrap_or_else(|| layout.default_schema().to_owned()),
            create_schema: !skips("skip_schema_creation", &config.skip_schema_creation)?,
            create_table: !skips("skip_table_creation", &config.skip_table_creation)?,
            create_index: !skips("skip_index_creation", &config.skip_index_creation)?,
        };
        let connection = text(&config.conn_str, "PG_CONN_STR").unwrap_or_default();
        let settings = settings::Settings::new(&connection).map_err(|e| {
            Diagnostic::error("Invalid PostgreSQL backend configuration", e.to_string()).at_attribute("conn_str")
        })?;
        Ok(match layout {
            Layout::States => Arc::new(Guarded::new(client::Client::prepare(settings, &tables).await?)),
            Layout::Objects => {
                let keeps_copies = config.local_copy.known() == Some(&true);
                Arc::new(Guarded::new(
                    objects::Client::prepare(settings, &tables, keeps_copies).await?,
                ))
            }
        })
    }
}
