//! Writing of files with acceptance tests.

use monoform_sdk::Json;

/// A file in the making.
#[derive(Debug, Default)]
pub(crate) struct Hcl {
    text: String,
    depth: usize,
}

impl Hcl {
    pub fn into_text(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Begins a block.
    pub fn open(&mut self, header: &str) {
        self.line(&format!("{header} {{"));
        self.depth += 1;
    }

    /// Ends a block.
    pub fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    /// Writes an attribute with an expression.
    pub fn attribute(&mut self, name: &str, expression: &str) {
        self.line(&format!("{name} = {expression}"));
    }

    pub fn text_if(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.attribute(name, &text(value));
        }
    }

    pub fn true_if(&mut self, name: &str, value: bool) {
        if value {
            self.attribute(name, "true");
        }
    }

    /// Writes an object, if it has entries.
    pub fn values(&mut self, name: &str, entries: &[(String, Json)]) {
        if entries.is_empty() {
            return;
        }
        let entries: Vec<String> = entries
            .iter()
            .map(|(name, value)| format!("{} = {}", text(name), expression(value)))
            .collect();
        self.attribute(name, &format!("{{ {} }}", entries.join(", ")));
    }

    /// Writes a configuration as it is: an indentation would change the texts in it.
    pub fn config(&mut self, config: Option<&str>) {
        if let Some(config) = config {
            self.open("config");
            self.text.push_str(config.trim_end());
            self.text.push('\n');
            self.close();
        }
    }
}

/// Returns a text as an expression.
pub(crate) fn text(text: &str) -> String {
    expression(&Json::from(text))
}

/// Returns texts as a list.
pub(crate) fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|item| text(item)).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns a document as an expression. JSON is the syntax of expressions, but for templates in texts.
fn expression(document: &Json) -> String {
    document.to_string().replace("${", "$${").replace("%{", "%%{")
}
