//! Inputs of one run.

use std::sync::Arc;

use config::{Config, TestRun};

use crate::providers::RunProviders;
use crate::variables::RunVariables;

pub(crate) struct Setting<'f, 's> {
    pub run: &'f TestRun,
    pub index: usize,
    pub config: Arc<Config>,
    pub providers: RunProviders<'s>,
    pub variables: RunVariables,
}
