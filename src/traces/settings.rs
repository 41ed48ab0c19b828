//! Settings from the standard environment variables of OpenTelemetry.

use std::path::PathBuf;
use std::time::Duration;

use files::Environment;
use http::Url;
use percent_encoding::percent_decode_str;

use crate::context::Parent;

/// Name and version of this program in the trace.
#[derive(Clone, Copy, Debug)]
pub struct Product<'p> {
    /// Name of the service, unless `OTEL_SERVICE_NAME` sets another one.
    pub service: &'p str,
    pub version: &'p str,
}

/// Settings of a trace: its destination, the requests to it, and the attributes of the service.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Complete URL to which spans are posted.
    pub(crate) endpoint: Url,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    /// PEM file with trust anchors that replace those of the system.
    pub(crate) certificate: Option<PathBuf>,
    /// Attributes of the service.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) version: String,
    pub(crate) parent: Option<Parent>,
    /// Environment, which has the proxy settings.
    pub(crate) environment: Environment,
}

/// Reason why a requested trace cannot be recorded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("{name} has the value \"{value}\", which is not an HTTP address")]
    Endpoint { name: String, value: String },
    #[error(
        "{name} has the value \"{value}\". Spans are sent by http/protobuf only, which most collectors accept on port 4318"
    )]
    Protocol { name: String, value: String },
}

impl Settings {
    /// Reads the settings. Returns `None` if no trace is requested.
    ///
    /// # Errors
    /// A setting is invalid or not supported.
    pub fn from_environment(
        environment: &Environment,
        product: Product<'_>,
    ) -> Result<Option<Settings>, SettingsError> {
        if environment.get("OTEL_TRACES_EXPORTER") != Some("otlp") {
            return Ok(None);
        }
        if environment
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Ok(None);
        }
        if let Some((name, value)) = exporter(environment, "PROTOCOL").filter(|(_, value)| *value != "http/protobuf") {
            let value = value.to_owned();
            return Err(SettingsError::Protocol { name, value });
        }
        let headers = exporter(environment, "HEADERS").map(|(_, text)| pairs(text));
        let timeout = exporter(environment, "TIMEOUT").and_then(|(_, text)| text.parse().ok());
        let certificate = exporter(environment, "CERTIFICATE").map(|(_, path)| path.into());
        let mut resource = environment
            .get("OTEL_RESOURCE_ATTRIBUTES")
            .map(pairs)
            .unwrap_or_default();
        let service = environment.get("OTEL_SERVICE_NAME");
        if service.is_some() || !resource.iter().any(|(name, _)| name == "service.name") {
            resource.retain(|(name, _)| name != "service.name");
            let service = service.unwrap_or(product.service);
            resource.push(("service.name".to_owned(), service.to_owned()));
        }
        if !resource.iter().any(|(name, _)| name == "service.version") {
            resource.push(("service.version".to_owned(), product.version.to_owned()));
        }
        let parent = environment.get("TRACEPARENT");
        Ok(Some(Settings {
            endpoint: endpoint(environment)?,
            headers: headers.unwrap_or_default(),
            timeout: Duration::from_millis(timeout.unwrap_or(10_000)),
            certificate,
            resource,
            version: product.version.to_owned(),
            parent: parent.and_then(|parent| Parent::parse(parent, environment.get("TRACESTATE"))),
            environment: environment.clone(),
        }))
    }
}

/// Returns the name and the value of an exporter variable: the one for traces, or else the one for all signals. `None` if neither is set.
fn exporter<'e>(environment: &'e Environment, setting: &str) -> Option<(String, &'e str)> {
    ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"]
        .iter()
        .map(|prefix| format!("{prefix}{setting}"))
        .find_map(|name| {
            let value = environment.get(&name)?;
            Some((name, value))
        })
}

/// Returns the URL for spans. The variable for all signals has a base URL, to which the path for traces is added.
fn endpoint(environment: &Environment) -> Result<Url, SettingsError> {
    let (name, value) = exporter(environment, "ENDPOINT").unwrap_or_else(|| {
        let name = "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned();
        (name, "http://localhost:4318")
    });
    let address = match name.contains("_TRACES_") {
        true => value.to_owned(),
        false => format!("{}/v1/traces", value.trim_end_matches('/')),
    };
    let parsed = Url::parse(&address).ok();
    let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    parsed.ok_or_else(|| SettingsError::Endpoint {
        name,
        value: value.to_owned(),
    })
}

/// Splits `name=value,name=value`; values are percent-encoded. Parts without a value are ignored, as the specification requires.
fn pairs(text: &str) -> Vec<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text.trim()).decode_utf8_lossy().into_owned();
    let pairs = text.split(',').filter_map(|part| part.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), decoded(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::read(variables);
        let product = Product {
            service: "Monoform",
            version: "1.2.3",
        };
        Settings::from_environment(&environment, product)
    }

    const ON: (&str, &str) = ("OTEL_TRACES_EXPORTER", "otlp");

    #[test]
    fn nothing_is_recorded_unless_it_is_asked_for() {
        assert!(settings(&[]).unwrap().is_none());
        assert!(settings(&[("OTEL_TRACES_EXPORTER", "console")]).unwrap().is_none());
        assert!(
            settings(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a")])
                .unwrap()
                .is_none()
        );
        assert!(settings(&[ON, ("OTEL_SDK_DISABLED", "true")]).unwrap().is_none());
    }

    #[test]
    fn variables_for_traces_precede_those_for_all_signals() {
        let found = settings(&[ON]).unwrap().unwrap();
        assert_eq!(found.endpoint.as_str(), "http://localhost:4318/v1/traces");
        assert_eq!(found.timeout, Duration::from_secs(10));
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example/otel/");
        let found = settings(&[ON, all]).unwrap().unwrap();
        assert_eq!(found.endpoint.as_str(), "https://c.example/otel/v1/traces");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t.example:1/x");
        let found = settings(&[ON, all, traces, ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, d = e,f")]);
        let found = found.unwrap().unwrap();
        assert_eq!(found.endpoint.as_str(), "http://t.example:1/x");
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(found.headers, [pair("a", "b c"), pair("d", "e")]);
    }

    #[test]
    fn service_has_the_name_of_the_environment() {
        let name = |variables: &[(&str, &str)]| {
            let found = settings(&[&[ON], variables].concat()).unwrap().unwrap();
            let names = found.resource.into_iter().filter(|(name, _)| name == "service.name");
            names.map(|(_, value)| value).collect::<Vec<_>>()
        };
        let attributes = ("OTEL_RESOURCE_ATTRIBUTES", "service.name=r,team=x");
        assert_eq!(name(&[]), ["Monoform"]);
        assert_eq!(name(&[attributes]), ["r"]);
        assert_eq!(name(&[attributes, ("OTEL_SERVICE_NAME", "s")]), ["s"]);
    }

    #[test]
    fn settings_without_effect_are_errors() {
        let grpc = settings(&[ON, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(matches!(grpc, Err(SettingsError::Protocol { .. })));
        let endpoint = settings(&[ON, ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317")]);
        assert!(matches!(endpoint, Err(SettingsError::Endpoint { .. })));
    }
}
