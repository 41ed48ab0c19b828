//! Calls of a provisioner, independent of the transport.

use cty::Type;

use super::problems::{Use, of_schema};
use crate::check;
use crate::diag::{Diagnostics, Result};
use crate::guard::{guarded, guarded_now};
use crate::model::Cty;
use crate::provisioner::{Output, Provisioner};
use crate::schema::{Compiled, LazySchema, Schema};
use crate::stop::Stop;
use crate::wire::{Wire, decode};

/// A provisioner with its compiled schema, ready to answer requests.
pub struct ServedProvisioner<P> {
    provisioner: P,
    config: LazySchema,
}

impl<P: Provisioner> ServedProvisioner<P> {
    pub fn new(provisioner: P) -> ServedProvisioner<P> {
        ServedProvisioner {
            config: LazySchema::default(),
            provisioner,
        }
    }

    /// Returns the errors in the schema, one sentence each. A provisioner with errors cannot be served.
    pub fn problems(&self) -> Vec<String> {
        of_schema(Use::Provisioner, "", &self.declared(), &[])
    }

    /// Returns the schema as its author declares it.
    pub fn declared(&self) -> Schema {
        self.provisioner.schema()
    }

    fn schema(&self) -> &Compiled {
        self.config.get(|| self.provisioner.schema())
    }

    pub fn validate(&self, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let config = decode(config, &self.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut found = check::against_schema(self.schema(), &config, true);
            found.append(check::own_rules(&config, |model: &P::Config| {
                self.provisioner.validate(model)
            }));
            Ok(found)
        };
        guarded_now(check).unwrap_or_else(Err).unwrap_or_else(|errors| errors)
    }

    /// Runs the provisioner. `connection` is a map of strings, or null.
    pub async fn run(&self, config: &Wire, connection: &Wire, output: Output, stop: Stop) -> Result<()> {
        let config = decode(config, &self.schema().ty)?;
        let config = P::Config::from_cty(&config)?;
        let connection = decode(connection, &Type::map(Type::String))?;
        guarded(self.provisioner.run(config, connection, output, stop)).await
    }
}
