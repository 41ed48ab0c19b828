//! Messages of WS-Management for remote shells: encoding of requests, and parsing of the fields that are needed from their answers.

use roxmltree::{Document, Node};

use crate::{Error, Result};

/// A request to a shell.
pub enum Request<'a> {
    /// Creates a shell.
    Create,
    /// Starts a command in a shell.
    Command { shell: &'a str, command: &'a str },
    /// Requests the output that a command has written since the last such request. Without new output, the service waits for some before it
    /// answers.
    Receive { shell: &'a str, command: &'a str },
    /// Ends a command. If it has already ended, releases its resources.
    Terminate { shell: &'a str, command: &'a str },
    /// Deletes a shell.
    Delete { shell: &'a str },
}

/// Output of a command, and its exit status if it has ended.
#[derive(Debug, Default, PartialEq)]
pub struct Received {
    /// Standard output and standard error. Within a stream, the order of the output is kept.
    pub streams: [Vec<u8>; 2],
    /// Exit status of a command that has ended.
    pub ended: Option<i64>,
}

const SHELL: &str = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell";
const TRANSFER: &str = "http://schemas.xmlsoap.org/ws/2004/09/transfer";
const ANONYMOUS: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous";

/// Maximum length in bytes of an answer that this client requests. Every server accepts this length.
const ENVELOPE: u32 = 153_600;

/// Encodes a request. `seconds` is the operation timeout of the server.
pub fn envelope(to: &str, request: &Request<'_>, seconds: u64) -> String {
    let (action, options, selector, body) = match request {
        Request::Create => (
            format!("{TRANSFER}/Create"),
            // Code page 65001 is UTF-8, so output needs no conversion.
            option("WINRS_NOPROFILE", "FALSE") + &option("WINRS_CODEPAGE", "65001"),
            None,
            "<rsp:Shell><rsp:InputStreams>stdin</rsp:InputStreams><rsp:OutputStreams>stdout \
             stderr</rsp:OutputStreams></rsp:Shell>"
                .to_owned(),
        ),
        Request::Command { shell, command } => (
            format!("{SHELL}/Command"),
            option("WINRS_CONSOLEMODE_STDIN", "TRUE") + &option("WINRS_SKIP_CMD_SHELL", "FALSE"),
            Some(*shell),
            format!(
                "<rsp:CommandLine><rsp:Command>{}</rsp:Command></rsp:CommandLine>",
                escaped(command)
            ),
        ),
        Request::Receive { shell, command } => (
            format!("{SHELL}/Receive"),
            String::new(),
            Some(*shell),
            format!(
                "<rsp:Receive><rsp:DesiredStream CommandId=\"{}\">stdout stderr</rsp:DesiredStream></rsp:Receive>",
                escaped(command)
            ),
        ),
        Request::Terminate { shell, command } => (
            format!("{SHELL}/Signal"),
            String::new(),
            Some(*shell),
            format!(
                "<rsp:Signal CommandId=\"{}\"><rsp:Code>{SHELL}/signal/terminate</rsp:Code></rsp:Signal>",
                escaped(command)
            ),
        ),
        Request::Delete { shell } => (format!("{TRANSFER}/Delete"), String::new(), Some(*shell), String::new()),
    };
    let options = match options.as_str() {
        "" => String::new(),
        list => format!("<w:OptionSet>{list}</w:OptionSet>"),
    };
    let selector = selector.map_or_else(String::new, |shell| {
        format!(
            "<w:SelectorSet><w:Selector Name=\"ShellId\">{}</w:Selector></w:SelectorSet>",
            escaped(shell)
        )
    });
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><env:Envelope xmlns:env=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:a=\"http://schemas.xmlsoap.org/ws/2004/08/addressing\" \
         xmlns:w=\"http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd\" \
         xmlns:p=\"http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd\" xmlns:rsp=\"{SHELL}\"><env:Header>\
         <a:To>{}</a:To><a:ReplyTo><a:Address env:mustUnderstand=\"true\">{ANONYMOUS}</a:Address></a:ReplyTo>\
         <w:MaxEnvelopeSize env:mustUnderstand=\"true\">{ENVELOPE}</w:MaxEnvelopeSize>\
         <a:MessageID>uuid:{}</a:MessageID>\
         <w:Locale env:mustUnderstand=\"false\" xml:lang=\"en-US\"/><p:DataLocale env:mustUnderstand=\"false\" \
         xml:lang=\"en-US\"/><w:OperationTimeout>PT{seconds}S</w:OperationTimeout>\
         <a:Action env:mustUnderstand=\"true\">{action}</a:Action>\
         <w:ResourceURI env:mustUnderstand=\"true\">{SHELL}/cmd</w:ResourceURI>{selector}{options}</env:Header>\
         <env:Body>{body}</env:Body></env:Envelope>",
        escaped(to),
        uuid::Uuid::new_v4().hyphenated().to_string().to_uppercase(),
    )
}

fn option(name: &str, value: &str) -> String {
    format!("<w:Option Name=\"{name}\">{value}</w:Option>")
}

/// Escapes text for XML. Characters that XML cannot represent are replaced by U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // Escaped, because XML parsers change the literal characters: line ends in text, and all three in attribute values.
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", u32::from(c))),
            c if c < ' ' || c == '\u{fffe}' || c == '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn read(answer: &str) -> Result<Document<'_>> {
    Document::parse(answer).map_err(|error| Error::new(format!("the WinRM service's answer cannot be read: {error}")))
}

fn named<'a, 'd>(document: &'a Document<'d>, name: &'a str) -> impl Iterator<Item = Node<'a, 'd>> + use<'a, 'd> {
    document
        .descendants()
        .filter(move |node| node.tag_name().name() == name)
}

fn text_of(document: &Document<'_>, name: &str) -> Option<String> {
    let text = named(document, name).find_map(|node| node.text().map(str::trim).map(str::to_owned));
    text.filter(|text| !text.is_empty())
}

/// Returns the ID of a shell that was created.
pub fn shell_id(answer: &str) -> Result<String> {
    let document = read(answer)?;
    let selector = named(&document, "Selector")
        .find(|node| node.attribute("Name") == Some("ShellId"))
        .and_then(|node| node.text().map(str::to_owned));
    selector
        .or_else(|| text_of(&document, "ShellId"))
        .ok_or_else(|| Error::new("the WinRM service made a shell, and did not say which"))
}

/// Returns the ID of a command that was started.
pub fn command_id(answer: &str) -> Result<String> {
    text_of(&read(answer)?, "CommandId")
        .ok_or_else(|| Error::new("the WinRM service started a command, and did not say which"))
}

/// Decodes the output of a command.
pub fn received(answer: &str) -> Result<Received> {
    use base64::Engine as _;
    let document = read(answer)?;
    let mut found = Received::default();
    for stream in named(&document, "Stream") {
        let text: String = stream.text().unwrap_or_default().split_whitespace().collect();
        let data = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| Error::new(format!("the output of a command cannot be read: {error}")))?;
        let index = usize::from(stream.attribute("Name") == Some("stderr"));
        found.streams[index].extend(data);
    }
    let done = named(&document, "CommandState").any(|node| {
        node.attribute("State")
            .is_some_and(|state| state.ends_with("/CommandState/Done"))
    });
    if done {
        // Without an exit code, the command counts as failed.
        let text = text_of(&document, "ExitCode")
            .ok_or_else(|| Error::fatal("the command ended, but the answer has no exit code"))?;
        // Parsed with 64 bits, because some services send a signed status and others an unsigned one.
        let status = text
            .trim()
            .parse()
            .map_err(|_| Error::fatal(format!("the exit code of the command is no number: {text:?}")))?;
        found.ended = Some(status);
    }
    Ok(found)
}

/// Reads the fault in an answer, if there is one: true if it is an operation timeout, and its text.
pub fn fault(answer: &str) -> Option<(bool, String)> {
    /// Fault code of an operation timeout.
    const TIMED_OUT: &str = "2150858793";
    let document = read(answer).ok()?;
    named(&document, "Fault").next()?;
    let code = named(&document, "WSManFault").find_map(|node| node.attribute("Code").map(str::to_owned));
    let subcode = named(&document, "Subcode")
        .flat_map(|node| node.descendants())
        .any(|node| node.text().is_some_and(|text| text.trim().ends_with(":TimedOut")));
    let reason = text_of(&document, "Message")
        .or_else(|| text_of(&document, "Text"))
        .unwrap_or_else(|| "a fault without a reason".to_owned());
    Some((subcode || code.as_deref() == Some(TIMED_OUT), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(body: &str) -> String {
        format!(
            "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:rsp=\"{SHELL}\" \
             xmlns:w=\"http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd\"><s:Header/><s:Body>{body}</s:Body></s:Envelope>"
        )
    }

    #[test]
    fn requests_are_well_formed_and_texts_survive() {
        let command = "echo \"<a> & 'b'\"\n";
        let requests = [
            Request::Create,
            Request::Command { shell: "S", command },
            Request::Receive {
                shell: "S",
                command: "C",
            },
            Request::Terminate {
                shell: "S",
                command: "C",
            },
            Request::Delete { shell: "S" },
        ];
        let actions = [
            "/Create",
            "/shell/Command",
            "/shell/Receive",
            "/shell/Signal",
            "/Delete",
        ];
        for (request, action) in requests.iter().zip(actions) {
            let text = envelope("http://h:5985/wsman", request, 60);
            let document = Document::parse(&text).unwrap();
            assert!(text_of(&document, "Action").unwrap().ends_with(action));
            assert_eq!(text_of(&document, "OperationTimeout").as_deref(), Some("PT60S"));
            if let Request::Command { .. } = request {
                let found = named(&document, "Command").next().unwrap();
                assert_eq!(found.text(), Some(command));
            }
        }
    }

    #[test]
    fn answers_are_read() {
        let shell = answer("<rsp:Shell><rsp:ShellId>1-2</rsp:ShellId></rsp:Shell>");
        assert_eq!(shell_id(&shell).unwrap(), "1-2");
        assert!(command_id(&shell).is_err());
        let output = answer(
            "<rsp:ReceiveResponse><rsp:Stream Name=\"stdout\" CommandId=\"C\">aGk=</rsp:Stream><rsp:Stream Name=\"stderr\" \
             CommandId=\"C\">IQ==</rsp:Stream><rsp:Stream Name=\"stdout\" CommandId=\"C\" End=\"true\"/><rsp:CommandState \
             CommandId=\"C\" State=\"http://schemas.microsoft.com/wbem/wsman/1/windows/shell/CommandState/Done\">\
             <rsp:ExitCode>7</rsp:ExitCode></rsp:CommandState></rsp:ReceiveResponse>",
        );
        assert_eq!(
            received(&output).unwrap(),
            Received {
                streams: [b"hi".to_vec(), b"!".to_vec()],
                ended: Some(7)
            }
        );
        for (status, part) in [("", "no exit code"), ("<rsp:ExitCode>x</rsp:ExitCode>", "\"x\"")] {
            let ended = output.replace("<rsp:ExitCode>7</rsp:ExitCode>", status);
            let error = received(&ended).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let fault_text = answer(
            "<s:Fault><s:Code><s:Value>s:Receiver</s:Value><s:Subcode><s:Value>w:TimedOut</s:Value></s:Subcode></s:Code>\
             <s:Reason><s:Text xml:lang=\"en-US\">Too slow.</s:Text></s:Reason></s:Fault>",
        );
        assert_eq!(fault(&fault_text), Some((true, "Too slow.".to_owned())));
        assert_eq!(fault(&output), None);
        assert_eq!(fault("no XML"), None);
    }
}
