//! `login`: obtains a token of a host with the help of a browser, and stores it for later commands.

use net::discovery::{MESSAGE_OF_THE_DAY, Services, TFE};
use net::login::{Attempt, Grant, LoginService, OauthClient, by_password};
use net::{Client, Host, Token, Url};
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::prompt::{Answer, Echo};

use crate::args::flags::{self, Flags, FromFlags};
use crate::browser;
use crate::commands::Command;
use crate::credentials::{DEFAULT_HOST, Location, Stored, host_argument};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "login",
    about: "Obtain and save credentials for a remote host",
    positional: "[HOSTNAME]",
    details: "Obtains a token of a host, app.terraform.io if none is named, and stores it: with the credentials helper that the CLI \
      configuration names, or in the file credentials.tfrc.json of the directory .terraform.d, in plain text and readable by you \
      only.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    input: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        Arguments {
            positional: flags.positional(),
            input: flags.switch("input", true, "Do not ask questions: login cannot do without."),
        }
    }
}

/// Rule line between questions and results, as wide as Terraform's.
const RULE: &str = "\n---------------------------------------------------------------------------------\n";

/// Limit of the host's responses, in bytes.
const LIMIT: u64 = 1024 * 1024;

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let (host, given) = host_argument(&arguments.positional, "log in to")?;
    if !arguments.input {
        return Err(Failure::new(
            "Login is an interactive command",
            format!(
                "The command \"{} login\" asks whether it may go on, so it cannot be used without input. Where nobody can answer, \
                 write the token into a \"credentials\" block of the CLI configuration, or set the environment variable \
                 TF_TOKEN_ with the name of the host.",
                session.ui.program.command
            ),
        ));
    }
    let Some(host) = host else {
        return Err(Failure::new(
            "Invalid hostname",
            format!("The given hostname \"{given}\" is not valid: it must be the name of a host, and perhaps a port."),
        ));
    };
    let runtime = session.runtime()?;
    let login = Login {
        session,
        net: session.net(),
        shown: host.display(),
        stored: Stored::find(session, host.clone()),
        host,
    };
    // An interrupt ends the process, and with it every request: nothing has to be saved.
    runtime.block_on(login.run())?;
    Ok(Outcome::success())
}

fn error(summary: &str, detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}

/// Method of obtaining a token.
enum Way {
    Oauth(Box<OauthClient>, Grant),
    /// The user copies the token from a page of this service.
    Page(Url),
}

struct Login<'s> {
    session: &'s Session,
    net: Client,
    host: Host,
    /// Host name for display.
    shown: String,
    stored: Stored<'s>,
}

impl Login<'_> {
    async fn run(&self) -> Result<(), Diagnostics> {
        let services = self.net.services(&self.host).await.map_err(|e| {
            let summary = format!("Service discovery failed for {}", self.shown);
            error(&summary, format!("It is not known how to log in: {e}."))
        })?;
        let (way, warnings) = self.way(&services)?;
        // The storage of the token is checked first, so that no user logs in for a token that cannot be stored.
        if let Location::OtherFile = self.stored.location() {
            let mut problems = warnings;
            problems.push(
                self.stored
                    .maintained_by_user("log in", self.session.ui.program.command),
            );
            return Err(problems);
        }
        self.session.show_now(&warnings, &SourceMap::default());
        self.consent(&way)?;
        let token = match &way {
            Way::Oauth(client, Grant::Code) => self.by_code(client).await?,
            Way::Oauth(client, Grant::Password) => self.by_password(client).await?,
            Way::Page(service) => self.by_page(service).await?,
        };
        self.stored.store(&self.net, Some(&token)).await.map_err(|why| {
            let detail = format!(
                "The host has issued a token, but it could not be stored: {why}. Solve this, and log in again."
            );
            error("Failed to save API token", detail)
        })?;
        self.succeeded(&services, &way, &token).await;
        Ok(())
    }

    fn line(&self, text: impl AsRef<str>) {
        self.session.message(text);
    }

    fn way(&self, services: &Services) -> Result<(Way, Diagnostics), Diagnostics> {
        let mut warnings = Diagnostics::new();
        let host = &self.shown;
        let no_login = |why: String| Diagnostic::warning("Host does not support Terraform login", why);
        match services.login() {
            LoginService::Offered(client) => {
                let grant = if client.grants.contains(&Grant::Code) {
                    Grant::Code
                } else if client.grants.contains(&Grant::Password) && self.host.as_str() == DEFAULT_HOST {
                    // A password is only sent to HCP Terraform, as in Terraform: other hosts could collect passwords.
                    Grant::Password
                } else {
                    let detail = format!("{host} issues tokens only by methods that this version does not support.");
                    return Err(error("Host does not support Terraform login", detail));
                };
                return Ok((Way::Oauth(client, grant), warnings));
            }
            LoginService::NotOffered => {}
            LoginService::OtherVersion => warnings.push(no_login(format!(
                "{host} has a version of the login service that this version of {} does not support.",
                self.session.ui.program.tool
            ))),
            LoginService::Malformed(why) => warnings.push(no_login(format!(
                "The service discovery document of {host} cannot be used: {why}."
            ))),
        }
        let why = match services.url(TFE) {
            Ok(Some(service)) => return Ok((Way::Page(service), warnings)),
            Ok(None) => format!("{host} does not support the creation of tokens."),
            Err(reason) => format!("The address that {host} has for its service {TFE} cannot be used: {reason}."),
        };
        warnings.push(Diagnostic::error("Host does not support Terraform tokens API", why));
        Err(warnings)
    }

    /// Announces the login, and asks for the user's consent.
    fn consent(&self, way: &Way) -> Result<(), Diagnostics> {
        let tool = self.session.ui.program.tool;
        let mechanism = match way {
            Way::Oauth(..) => "OAuth",
            Way::Page(_) => "your browser",
        };
        self.line(format!(
            "{tool} will request an API token for {} using {mechanism}.\n",
            self.shown
        ));
        if matches!(way, Way::Oauth(_, Grant::Code)) {
            self.line(
                "This takes a web browser on this computer. Where there is none, create a token by other\nmeans, and write it into \
                 the CLI configuration.\n",
            );
        }
        self.line(format!(
            "If login is successful, {tool} will store the token {}\n",
            self.stored.target()
        ));
        let answer = self.ask(
            "Do you want to proceed?",
            "  Only 'yes' will be accepted to confirm.\n\n",
            Echo::On,
        )?;
        // As in Terraform, the case of this answer does not matter: unlike in its other questions, "YES" is an
        // agreement here.
        if answer.to_lowercase() != "yes" {
            return Err(error("Login cancelled", ""));
        }
        Ok(())
    }

    fn ask(&self, question: &str, description: &str, echo: Echo) -> Result<String, Diagnostics> {
        let style = self.session.ui.style();
        let prompt = format!(
            "{}\n{description}  {} ",
            style.bold(question),
            style.bold("Enter a value:")
        );
        let answer = self.session.ui.ask(&prompt, echo);
        self.line("");
        match answer {
            Answer::Line(text) => Ok(text),
            Answer::End => Err(error("Login cancelled", "There is no answer: the input has ended.")),
            Answer::Interrupted => Err(error("Login cancelled", "The question was interrupted.")),
        }
    }

    fn open(&self, url: &Url, page: &str) {
        let (tool, host) = (self.session.ui.program.tool, &self.shown);
        // A command cannot see whether a browser has shown the page, so the URL is printed in either case.
        if browser::open(url.as_str()) {
            self.line(format!(
                "{tool} must now open a web browser to the {page} for {host}.\n"
            ));
            self.line(format!("If no browser opens, open this address yourself:\n    {url}\n"));
        } else {
            self.line(format!("The {page} for {host} is at this address:\n    {url}\n"));
        }
    }

    async fn by_code(&self, client: &OauthClient) -> Result<Token, Diagnostics> {
        // The port is a part of the login page's URL, so it must be open first.
        let Some(attempt) = Attempt::begin(client).await else {
            let (low, high) = (client.ports.start(), client.ports.end());
            return Err(error(
                "Can't start temporary login server",
                format!(
                    "The browser sends the answer of {} to a port of this machine from {low} to {high}, and none of them is free. \
                     End a program that listens at one of them.",
                    self.shown
                ),
            ));
        };
        let address = attempt.address(client).ok_or_else(|| {
            let detail = format!("{} does not say where to log in.", self.shown);
            error("Host does not support Terraform login", detail)
        })?;
        self.open(&address, "login page");
        self.line(format!(
            "{} waits until the host confirms the login.\n",
            self.session.ui.program.tool
        ));
        // Flushed, because the command may now wait for minutes for the browser.
        self.session.ui.flush();
        attempt.finish(&self.net, client).await.map_err(|why| {
            let detail = format!("The host gave no token: {why}.");
            error("Failed to obtain auth token", detail)
        })
    }

    async fn by_password(&self, client: &OauthClient) -> Result<Token, Diagnostics> {
        self.line(RULE);
        self.line(format!(
            "{} needs your password once, to request an API token with it. It is not stored.\n",
            self.session.ui.program.tool
        ));
        let user = self.ask(&format!("Username for {}:", self.shown), "", Echo::On)?;
        let password = self.ask(&format!("Password for {}:", self.shown), "", Echo::Off)?;
        by_password(&self.net, client, &user, &password).await.map_err(|why| {
            let detail = format!("The remote host did not issue an API token: {why}.");
            error("Failed to retrieve API token", detail)
        })
    }

    /// Has the user paste a token from a page of the host.
    async fn by_page(&self, service: &Url) -> Result<Token, Diagnostics> {
        self.line(RULE);
        let mut page = service.clone();
        page.set_path("/app/settings/tokens");
        page.set_query(Some("source=terraform-login"));
        self.open(&page, "tokens page");
        self.line(RULE);
        self.line("Create a token on that page, and paste it here.\n");
        self.line(format!(
            "{} will store the token {}\n",
            self.session.ui.program.tool,
            self.stored.target()
        ));
        let text = self.ask(&format!("Token for {}:", self.shown), "", Echo::Off)?;
        let token = Token::new(text.trim());
        // The request also shows whether the token is valid, before the token is stored.
        let user = self.user(service, &token).await?;
        let user = self.session.ui.style().bold(user);
        self.line(format!("\nRetrieved token for user {user}\n"));
        Ok(token)
    }

    async fn user(&self, service: &Url, token: &Token) -> Result<String, Diagnostics> {
        let failed = |why: String| error(&format!("Failed to retrieve user account details: {why}"), "");
        let url = service.join("account/details").map_err(|e| failed(e.to_string()))?;
        let request = self.net.get(url).token(Some(token));
        let request = request.header("accept", "application/vnd.api+json");
        let answer = match request.read(LIMIT).await {
            Ok((_, answer)) => answer,
            // Only this status is about the token: after any other failure, it may be valid.
            Err(e) if e.status().is_some_and(|status| status.as_u16() == 401) => {
                let detail = format!("{} does not accept the token. Nothing was stored.", self.shown);
                return Err(error("Token is invalid: unauthorized", detail));
            }
            Err(e) => return Err(failed(e.to_string())),
        };
        let document: Json = serde_json::from_slice(&answer).unwrap_or_default();
        let name = document.pointer("/data/attributes/username").and_then(Json::as_str);
        name.map(str::to_owned)
            .ok_or_else(|| failed("the answer has no user name in it".to_owned()))
    }

    async fn succeeded(&self, services: &Services, way: &Way, token: &Token) {
        let style = self.session.ui.style();
        let success = |text: String| format!("{} {}", style.good("Success!"), style.bold(text));
        self.line(RULE);
        if self.host.as_str() == DEFAULT_HOST {
            match self.message_of_the_day(services, token).await {
                Some(message) => self.line(without_markup(&message)),
                None => self.line(success("Logged in to HCP Terraform".to_owned()) + "\n"),
            }
        } else if let Way::Page(_) = way {
            self.line(success(format!("Logged in to Terraform Enterprise ({})", self.shown)) + "\n");
        } else {
            self.line(format!(
                "{}\n\nCommands that send requests to {} use it from now on.\n",
                success(format!(
                    "{} has obtained and saved an API token.",
                    self.session.ui.program.tool
                )),
                self.shown
            ));
        }
    }

    /// Returns the host's message for users that have logged in. It is optional, so errors are ignored.
    async fn message_of_the_day(&self, services: &Services, token: &Token) -> Option<String> {
        let mut url = services.url(MESSAGE_OF_THE_DAY).ok().flatten()?;
        // `Services::url` ends every URL with a slash, but this service is a single document.
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        let (_, answer) = self.net.get(url).token(Some(token)).read(LIMIT).await.ok()?;
        let document: Json = serde_json::from_slice(&answer).ok()?;
        let errors = document.get("errors").is_some_and(|errors| !errors.is_null());
        let message = document.get("msg")?.as_str()?;
        (!errors && !message.is_empty()).then(|| message.to_owned())
    }
}

/// Removes colour markup such as `[green]`.
fn without_markup(text: &str) -> String {
    // The colour names of the library that Terraform colours this message with. Other words in brackets belong to
    // the text.
    const COLOURS: &[&str] = &[
        "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "default",
    ];
    let is_markup = |word: &str| {
        let colour = word.trim_start_matches('_').trim_start_matches("light_");
        matches!(
            word,
            "bold" | "dim" | "reset" | "reset_bold" | "underline" | "blink_slow" | "invert"
        ) || COLOURS.contains(&colour)
            || colour == "dark_gray"
            || colour == "light_gray"
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        match from.find(']').and_then(|end| Some((from.get(1..end)?, end))) {
            Some((word, end)) if is_markup(word) => rest = from.get(end + 1..).unwrap_or_default(),
            _ => {
                out.push('[');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_are_taken_out_of_a_message() {
        assert_eq!(
            without_markup("[green][bold]a[reset] [b] [light_blue]c [_red_] [d"),
            "a [b] c [_red_] [d"
        );
    }
}
