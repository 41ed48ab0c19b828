//! The blocks about OCI registries: `oci_credentials` and `oci_default_credentials`.

use std::path::PathBuf;

use net::{Host, OciLogin, OciSettings, Token};
use oci::Repository;

use super::{SettingError, boolean, text, texts};
use crate::hcl1::Item;

/// Reads a block `oci_credentials "HOST[/PATH]"`.
pub(super) fn credentials(key: &str, body: Vec<Item>, settings: &mut OciSettings) -> Result<(), SettingError> {
    let key = scope(key)?;
    if settings.logins.contains_key(&key) {
        return Err(SettingError::Oci(format!(
            "there can be only one oci_credentials block for \"{key}\""
        )));
    }
    let (mut username, mut password, mut access, mut refresh, mut helper) = (None, None, None, None, None);
    for item in body {
        let name = item.keys.join(".");
        let target = match &*name {
            "username" => &mut username,
            "password" => &mut password,
            "access_token" => &mut access,
            "refresh_token" => &mut refresh,
            "docker_credentials_helper" => &mut helper,
            _ => {
                return Err(SettingError::NoArgument {
                    method: "oci_credentials".to_owned(),
                    argument: name,
                });
            }
        };
        *target = Some(text(&item.value, &name)?);
    }
    let login = match (username, password, access, refresh, helper) {
        (Some(username), Some(password), None, None, None) => OciLogin::Password {
            username,
            password: Token::new(password),
        },
        (None, None, Some(access), refresh, None) => OciLogin::Tokens {
            access: Token::new(access),
            refresh: refresh.map(Token::new),
        },
        // Docker's helpers are called with a host, not with a repository.
        (None, None, None, None, Some(helper)) if !key.contains('/') => OciLogin::Helper(helper),
        (None, None, None, None, Some(_)) => {
            return Err(SettingError::Oci(format!(
                "a docker_credentials_helper is for a host, and \"{key}\" is a part of one"
            )));
        }
        _ => {
            return Err(SettingError::Oci(format!(
                "oci_credentials \"{key}\" needs either username and password, or access_token with or without refresh_token, or \
                 docker_credentials_helper"
            )));
        }
    };
    settings.logins.insert(key, login);
    Ok(())
}

/// Reads the block `oci_default_credentials`. Relative paths begin at `dir`, the directory of the CLI configuration file.
pub(super) fn default_credentials(
    body: Vec<Item>,
    settings: &mut OciSettings,
    dir: Option<&std::path::Path>,
) -> Result<(), SettingError> {
    for item in body {
        let name = item.keys.join(".");
        match &*name {
            "discover_ambient_credentials" => settings.ambient = boolean(&item.value, &name)?,
            "docker_style_config_files" => {
                let files = texts(item.value, &name)?.into_iter().map(PathBuf::from);
                let beside = |file: PathBuf| match dir {
                    Some(dir) => dir.join(file),
                    None => file,
                };
                settings.files = Some(files.map(beside).collect());
            }
            "docker_credentials_helper" => settings.helper = Some(text(&item.value, &name)?),
            _ => {
                return Err(SettingError::NoArgument {
                    method: "oci_default_credentials".to_owned(),
                    argument: name,
                });
            }
        }
    }
    if !settings.ambient && settings.files.is_some() {
        return Err(SettingError::Oci(
            "docker_style_config_files has no effect without discover_ambient_credentials: remove one of them"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Normalizes the scope of credentials, `HOST[:PORT][/PATH]`, for comparison.
fn scope(text: &str) -> Result<String, SettingError> {
    let invalid = |why: String| SettingError::Oci(format!("oci_credentials \"{text}\" is not valid: {why}"));
    match text.contains('/') {
        true => Repository::parse(text)
            .map(|repository| repository.to_string())
            .map_err(|error| invalid(error.to_string())),
        false => Host::parse(text)
            .map(|host| host.to_string())
            .ok_or_else(|| invalid("its label must be HOST or HOST/PATH".to_owned())),
    }
}
