//! Web servers: archives, and pages that name the location of a module.

use std::path::Path;

use archive::Limits;
use config::source_address::RemoteSource;
use net::{Client, Response, Url, shown};
use tokio::io::AsyncWriteExt;

use super::{FetchError, LocationError, file_error};

/// Limit of the part of a page that is searched for the location.
const PAGE_LIMIT: u64 = 4 << 20;

pub(super) async fn download(client: &Client, url: &Url, to: &Path) -> Result<(), FetchError> {
    let response = client.get(url.clone()).with_netrc().retries(2).send().await;
    let response = response.and_then(Response::success).map_err(explained)?;
    let limits = Limits::from_variables(client.settings().environment.all())?;
    save(response, to, &limits).await
}

/// Writes the body of a response to a file.
pub(super) async fn save(mut response: Response, to: &Path, limits: &Limits) -> Result<(), FetchError> {
    let failed = file_error("writing", to);
    let too_large = |response: &Response| FetchError::DownloadTooLarge {
        address: shown(&response.url),
        limits: *limits,
    };
    let mut file = tokio::fs::File::create(to).await.map_err(failed)?;
    // If the declared size is too large, the download is not started. The declaration may be wrong, so received
    // bytes are counted, too.
    let announced = response.announced_size();
    if announced.is_some_and(|size| size > limits.download) {
        return Err(too_large(&response));
    }
    let mut size = 0_u64;
    while let Some(chunk) = response.chunk().await? {
        let chunk = chunk.as_ref();
        size += chunk.len() as u64;
        if size > limits.download {
            return Err(too_large(&response));
        }
        file.write_all(chunk).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    // An interrupted transfer can look like the end of the body.
    match announced {
        Some(announced) if announced != size => Err(FetchError::Incomplete {
            address: shown(&response.url),
            announced,
            received: size,
        }),
        _ => Ok(()),
    }
}

/// Numbers of bytes and files of a directory of objects that may still be downloaded.
pub(super) struct Budget {
    limits: Limits,
    bytes: u64,
    entries: usize,
}

impl Budget {
    pub fn new(client: &Client) -> Result<Budget, FetchError> {
        let limits = Limits::from_variables(client.settings().environment.all())?;
        Ok(Budget {
            limits,
            bytes: limits.bytes,
            entries: limits.entries,
        })
    }

    /// Counts a file that was downloaded.
    pub fn spend(&mut self, file: &Path) -> Result<(), FetchError> {
        let size = std::fs::metadata(file).map_or(0, |found| found.len());
        let (too_large, too_many) = (archive::Error::TooLarge, archive::Error::TooMany);
        let directory = |error: fn(Limits) -> archive::Error| FetchError::Directory(error(self.limits));
        self.bytes = self.bytes.checked_sub(size).ok_or_else(|| directory(too_large))?;
        self.entries = self.entries.checked_sub(1).ok_or_else(|| directory(too_many))?;
        Ok(())
    }
}

/// Returns the error of a request, with advice for some causes.
fn explained(error: net::Error) -> FetchError {
    let without_network = format!(". {}", net::WITHOUT_NETWORK.trim_end_matches('.'));
    let hint = match error.status().map(|s| s.as_u16()) {
        Some(401 | 403) => ". A name and a password can be given in the .netrc file",
        _ if error.is_unreachable() => &without_network,
        _ => "",
    };
    FetchError::request(error, hint)
}

/// Requests the location of a module from a web server, which names it in a header or in an element of the page.
pub(super) async fn discovered_location(client: &Client, url: &Url) -> Result<RemoteSource, FetchError> {
    let mut asked = url.clone();
    // Servers recognize Terraform's requests for the location by this parameter.
    asked.query_pairs_mut().append_pair("terraform-get", "1");
    let response = client.get(asked).with_netrc().retries(2).send().await;
    let mut response = response.and_then(Response::success).map_err(explained)?;
    let said = match response.header("x-terraform-get").filter(|v| !v.is_empty()) {
        Some(said) => said.to_owned(),
        None => {
            let page = response.bytes(PAGE_LIMIT).await?;
            in_page(&String::from_utf8_lossy(&page)).ok_or_else(|| FetchError::NoLocation(shown(url)))?
        }
    };
    location(&response.url, &said).map_err(|reason| FetchError::Location {
        address: shown(url),
        location: said,
        reason,
    })
}

/// Returns the source at a location in a response. The location may be relative to the requested address.
pub(crate) fn location(asked: &Url, said: &str) -> Result<RemoteSource, LocationError> {
    let said = said.trim();
    let relative = said.starts_with("./") || said.starts_with("../") || said.starts_with('/');
    let absolute = if relative {
        // The double slash before a subdirectory does not belong to the URL, and `join` must not see it.
        let (path, query) = said.split_at(said.find('?').unwrap_or(said.len()));
        let (path, subdir) = match path.get(1..).and_then(|p| p.find("//")) {
            Some(at) => path.split_at(at + 1),
            None => (path, ""),
        };
        let mut base = asked.clone();
        base.set_query(None);
        let joined = base.join(path).map_err(LocationError::Url)?;
        format!("{joined}{subdir}{query}")
    } else {
        said.to_owned()
    };
    let source = RemoteSource::parse(&absolute)
        .map_err(|e| LocationError::Address(e.to_string().trim_end_matches('.').to_owned()))?;
    match is_local(&source.package) {
        true => Err(LocationError::Local),
        false => Ok(source),
    }
}

/// Returns true if an address leads to a file of this machine, whichever program fetches it. Only a configuration can name such
/// a file. Otherwise a server could make a local directory count as a module, and its content a part of the plan.
fn is_local(package: &str) -> bool {
    let plain = package.rsplit_once("::").map_or(package, |(_, plain)| plain);
    let scheme = plain.get(..5).unwrap_or_default();
    scheme.eq_ignore_ascii_case("file:") || plain.starts_with('/')
}

/// Returns the content of `<meta name="terraform-get" content="…">` in the head of a page; `None` if there is no such element.
fn in_page(page: &str) -> Option<String> {
    // ASCII case does not change offsets, so positions in one text are valid in the other.
    let lower = page.to_ascii_lowercase();
    let end = lower.find("<body").unwrap_or(lower.len());
    let mut at = 0;
    while let Some(found) = lower.get(at..end).and_then(|rest| rest.find("<meta")) {
        let begin = at + found + "<meta".len();
        let length = lower.get(begin..end)?.find('>')?;
        let element = page.get(begin..begin + length)?;
        if attribute(element, "name").is_some_and(|name| name.eq_ignore_ascii_case("terraform-get")) {
            return attribute(element, "content");
        }
        at = begin + length;
    }
    None
}

/// Returns the value of an attribute from the text of an element; `None` if the element has no such attribute.
fn attribute(element: &str, wanted: &str) -> Option<String> {
    let mut rest = element;
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let (value, next) = match after.chars().next()? {
            quote @ ('"' | '\'') => after.get(1..)?.split_once(quote)?,
            _ => after
                .split_once(char::is_whitespace)
                .unwrap_or((after.trim_end_matches('/'), "")),
        };
        if name
            .trim()
            .rsplit(char::is_whitespace)
            .next()
            .is_some_and(|n| n.eq_ignore_ascii_case(wanted))
        {
            // `&amp;` is replaced last, so that `&amp;lt;` becomes `&lt;`, not `<`.
            let text = value
                .replace("&quot;", "\"")
                .replace("&#39;", "'")
                .replace("&lt;", "<")
                .replace("&gt;", ">");
            return Some(text.replace("&amp;", "&"));
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_say_where_a_module_is() {
        for (page, expected) in [
            (
                "<!doctype html><HTML><head><meta charset=utf-8><META content='git::https://h/x.git?a=1&amp;b=2' \
                 name=\"terraform-get\"/></head>",
                Some("git::https://h/x.git?a=1&b=2"),
            ),
            ("<head><body><meta name=terraform-get content=x>", None),
            ("<meta name=terraform-get content=./x>", Some("./x")),
            ("<meta name=other content=x><meta", None),
            ("", None),
        ] {
            assert_eq!(in_page(page).as_deref(), expected, "{page}");
        }
    }

    #[test]
    fn locations_may_be_relative() {
        let asked = Url::parse("https://h.example/v1/a/b?x=1").unwrap();
        let at = |said: &str| location(&asked, said).map(|s| s.to_string());
        assert_eq!(
            at("/x.zip//sub?archive=zip"),
            Ok("https://h.example/x.zip//sub?archive=zip".to_owned())
        );
        assert_eq!(at("../x.zip"), Ok("https://h.example/v1/x.zip".to_owned()));
        assert_eq!(
            at("github.com/a/b?ref=1"),
            Ok("git::https://github.com/a/b.git?ref=1".to_owned())
        );
        assert!(at("a/b/c").is_err());
        for local in [
            "file:///etc",
            "FILE:///etc",
            "file:///etc/x.tar.gz//sub",
            "git::file:///srv/repository",
            "hg::file:///srv/repository",
            "git::/srv/repository",
        ] {
            assert!(at(local).is_err(), "{local}");
        }
        assert_eq!(at("file:///etc"), Err(LocationError::Local));
    }
}
