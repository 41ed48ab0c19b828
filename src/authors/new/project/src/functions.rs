//! Functions of the provider.

use monoform_sdk::{Function, Parameter};

/// The function `provider::sample::title`.
pub fn title() -> Function {
    let text = vec![Parameter::new::<String>("text", "Text of a note.")];
    Function::new(
        "Title of a note",
        "Returns the first line of a text, without blanks around it.",
        text,
        |arguments| {
            let text = arguments.get::<String>(0)?;
            Ok(text.lines().next().unwrap_or_default().trim().to_owned())
        },
    )
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    use crate::provider::SampleProvider;

    #[test]
    fn title_is_the_first_line() {
        let harness = Harness::new(SampleProvider);
        let title = |text: &str| harness.call("title", &[text.into()]).unwrap();
        assert_eq!(title(" Shopping \nbread\n"), "Shopping".into());
        assert_eq!(title(""), "".into());
    }
}
