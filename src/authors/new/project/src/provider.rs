//! The provider: its configuration, its client and its members.

use monoform_sdk::schema::required;
use monoform_sdk::{Attr, Members, Model, Provider, Result, async_trait};

use crate::files::Directory;
use crate::functions;
use crate::lookup::Lookup;
use crate::note::Notes;

pub struct SampleProvider;

/// Keeps notes as files in a directory.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// Directory of the notes. It is made if it does not exist.
    #[member(required())]
    directory: Attr<String>,
}

#[async_trait]
impl Provider for SampleProvider {
    type Config = Config;
    /// Client that resources and data sources use: replace it by the client of your service.
    type Client = Directory;

    fn members(&self, members: &mut Members<Directory>) {
        members.resource("sample_note", Notes);
        members.data_source("sample_note", Lookup);
        members.function("title", functions::title());
    }

    async fn configure(&self, config: Config, _terraform_version: &str) -> Result<Directory> {
        Directory::open(config.directory.text())
    }
}
