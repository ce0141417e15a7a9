/// A setting that cannot be used.
///
/// Names where it was given: a variable of the environment, or in code. What may hold secrets is not shown: headers, resource
/// attributes, what is given in place of a file's name, and of an endpoint the part before `@` and the query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {}: {expected}", given(.value))]
#[non_exhaustive]
pub struct SettingsError {
    /// The variable, or the setting and that it was given in code.
    pub name: String,
    /// What was given; `None` where that may be a secret.
    pub value: Option<String>,
    /// What can be used.
    pub expected: String,
}

impl SettingsError {
    pub(crate) fn new(name: impl Into<String>, value: &str, expected: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Some(value.chars().take(200).collect()),
            expected: expected.into(),
        }
    }

    pub(crate) fn secret(name: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: None,
            expected: expected.into(),
        }
    }
}

fn given(value: &Option<String>) -> String {
    match value {
        Some(value) => format!("is {value:?}"),
        None => "cannot be used (it may hold secrets and is not shown)".into(),
    }
}
