//! XML responses. Cloud services send flat documents, in which an element can be found by its name alone.

use crate::client::{Answer, Failure};

/// Elements of a document: name without namespace, and text.
#[derive(Debug)]
pub struct Xml(Vec<(String, String)>);

impl Xml {
    /// Parses a document.
    ///
    /// # Errors
    /// The text is not one complete document, or it has a document type declaration.
    pub fn parse(text: &str) -> Result<Xml, roxmltree::Error> {
        // By default, the parser refuses document type declarations, so a document cannot define entities that expand without limit.
        let document = roxmltree::Document::parse(text)?;
        let elements = document.root().descendants().filter(roxmltree::Node::is_element);
        let read = |element: roxmltree::Node<'_, '_>| {
            let own = element
                .children()
                .filter_map(|child| child.text().filter(|_| child.is_text()));
            (element.tag_name().name().to_owned(), own.collect())
        };
        Ok(Xml(elements.map(read).collect()))
    }

    /// Parses the response to a request whose result is a document.
    ///
    /// # Errors
    /// The response is not one complete document.
    pub fn from_answer(answer: &Answer) -> Result<Xml, Failure> {
        // An answer that is not a complete document must be an error. If it were read as an empty document, it would look as if there were
        // no objects.
        Xml::parse(&answer.text()).map_err(|why| Failure {
            message: format!("the answer is not the XML document that it should be: {why}."),
            passing: false,
        })
    }

    /// Returns the text of the first element of this name.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, text)| &**text)
    }

    /// Returns the texts of all elements of this name.
    pub fn texts<'x>(&'x self, name: &'x str) -> impl Iterator<Item = &'x str> {
        self.0
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, text)| &**text)
    }
}

/// Returns the text of the first element with this name in a response that may not be XML, such as an error page.
#[must_use]
pub fn tag(text: &str, name: &str) -> Option<String> {
    Xml::parse(text).ok()?.text(name).map(str::to_owned)
}

/// Returns true if the error is about the bucket itself, which does not exist, and not about an object.
#[must_use]
pub fn is_about_bucket(answer: &Answer) -> bool {
    tag(&answer.text(), "Code").as_deref() == Some("NoSuchBucket")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn elements_are_found_by_name_and_read_as_text() {
        let xml = Xml::parse(
            "\u{feff}<?xml version=\"1.0\"?><A xmlns=\"urn:x\"><Key a=\"1\">a&amp;b/&#x3c;&#62;</Key><Key><![CDATA[c<d]]></Key>\
             <Key/><Size>1</Size></A>",
        )
        .unwrap();
        assert_eq!(xml.texts("Key").collect::<Vec<_>>(), ["a&b/<>", "c<d", ""]);
        assert_eq!((xml.text("Size"), xml.text("None")), (Some("1"), None));
    }

    #[test]
    fn answers_that_are_no_document_have_no_elements() {
        let entity = "<!DOCTYPE a [<!ENTITY b \"c\">]><a><Key>&b;</Key></a>";
        for text in ["", "no", "{\"Key\": 1}", "<a><Key>b</Key>", "<Key>&&lt;</Key>", entity] {
            assert!(Xml::parse(text).is_err(), "{text}");
            assert_eq!(tag(text, "Key"), None, "{text}");
        }
    }
}
