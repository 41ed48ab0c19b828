//! The data source `sample_note`.

use monoform_sdk::schema::{computed, required};
use monoform_sdk::{Attr, Context, DataSource, Diagnostic, Model, Result, Validator, async_trait};

use crate::files::Directory;
use crate::note::file_name;

/// Text of a note that exists.
#[derive(Clone, Default, Model)]
pub struct Found {
    /// Name of the note.
    #[member(required().validate(Validator::custom(file_name)))]
    name: Attr<String>,
    /// Text of the note.
    #[member(computed())]
    text: Attr<String>,
}

pub struct Lookup;

#[async_trait]
impl DataSource for Lookup {
    type Model = Found;
    type Client = Directory;

    async fn read(&self, config: Found, cx: &mut Context<Directory>) -> Result<Found> {
        let name = config.name.text();
        let missing = || Diagnostic::error("No such note", format!("There is no note {name:?}."));
        let text = cx.client()?.read(name)?.ok_or_else(missing)?;
        Ok(Found {
            text: text.into(),
            ..config
        })
    }
}
