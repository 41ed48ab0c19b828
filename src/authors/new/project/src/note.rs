//! The resource `sample_note`.

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{Attr, Check, Context, Diagnostic, Model, Resource, Result, Validator, async_trait};

use crate::files::Directory;

/// A note: a file in the directory of the provider.
#[derive(Clone, Default, Model)]
pub struct Note {
    /// Name of the note. Another name makes another note.
    #[member(required().validate(Validator::custom(file_name)).requires_replace())]
    pub name: Attr<String>,
    /// Text of the note; empty if it is not set.
    #[member(optional().computed().default(String::new()))]
    pub text: Attr<String>,
    /// Number of bytes of the text.
    #[member(computed())]
    pub size: Attr<i64>,
}

/// Refuses names that are no file in the directory.
pub fn file_name(check: &Check<'_>) -> Option<Diagnostic> {
    let name = check.value.as_str()?;
    let is_wrong = name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']);
    let detail = format!("{name:?} cannot be the name of a note.");
    is_wrong.then(|| Diagnostic::error("Invalid name", detail).at(check.path.clone()))
}

pub struct Notes;

#[async_trait]
impl Resource for Notes {
    type Model = Note;
    type Client = Directory;

    async fn create(&self, plan: Note, cx: &mut Context<Directory>) -> Result<Note> {
        cx.client()?.write(plan.name.text(), plan.text.text())?;
        Ok(Note {
            size: (plan.text.text().len() as i64).into(),
            ..plan
        })
    }

    async fn read(&self, state: Note, cx: &mut Context<Directory>) -> Result<Option<Note>> {
        let found = cx.client()?.read(state.name.text())?;
        Ok(found.map(|text| Note {
            size: (text.len() as i64).into(),
            text: text.into(),
            ..state
        }))
    }

    async fn update(&self, _prior: Note, plan: Note, cx: &mut Context<Directory>) -> Result<Note> {
        self.create(plan, cx).await
    }

    async fn delete(&self, state: Note, cx: &mut Context<Directory>) -> Result<()> {
        cx.client()?.remove(state.name.text())
    }

    /// Imports a note by its name.
    async fn import(&self, id: &str, cx: &mut Context<Directory>) -> Result<Note> {
        let note = Note {
            name: id.into(),
            ..Note::default()
        };
        let missing = || Diagnostic::error("No such note", format!("There is no note {id:?}.")).into();
        self.read(note, cx).await?.ok_or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    use crate::provider::SampleProvider;

    const TYPE: &str = "sample_note";

    async fn configured(name: &str) -> Harness<SampleProvider> {
        let directory = std::env::temp_dir().join(format!("sample-{name}-{}", std::process::id()));
        let harness = Harness::new(SampleProvider);
        let directory = directory.to_string_lossy().into_owned();
        harness.configure(&[("directory", directory.into())]).await.unwrap();
        harness
    }

    #[tokio::test]
    async fn note_is_created_changed_imported_and_destroyed() {
        let harness = configured("life").await;
        let mut note = harness.object(TYPE);
        note.apply(&[("name", "shopping".into()), ("text", "bread".into())])
            .await
            .unwrap();
        assert_eq!(note.get("size"), Some(&5.into()));
        note.apply(&[("name", "shopping".into()), ("text", "bread, milk".into())])
            .await
            .unwrap();
        let imported = harness.import(TYPE, "shopping").await.unwrap();
        assert_eq!(imported.get("text"), Some(&"bread, milk".into()));
        let renamed = note.plan(&[("name", "other".into())]).await.unwrap();
        assert_eq!(renamed.replace, ["name"]);
        note.destroy().await.unwrap();
        assert!(harness.import(TYPE, "shopping").await.is_err());
    }

    #[tokio::test]
    async fn names_that_are_paths_are_refused() {
        let harness = configured("names").await;
        let validate = |name: &str| harness.validate(TYPE, &[("name", name.into())]);
        assert!(validate("../up").has_errors());
        assert!(!validate("up").has_errors());
    }

    #[tokio::test]
    async fn data_source_reads_what_the_resource_has_written() {
        let harness = configured("data").await;
        let mut note = harness.object(TYPE);
        note.apply(&[("name", "a".into()), ("text", "text".into())])
            .await
            .unwrap();
        let found = harness.data(TYPE, &[("name", "a".into())]).await.unwrap();
        assert_eq!(found.get("text"), Some(&"text".into()));
        assert!(harness.data(TYPE, &[("name", "b".into())]).await.is_err());
        note.destroy().await.unwrap();
    }
}
