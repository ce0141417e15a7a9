//! What is not written: the names of this machine and of whoever uses it.

use serde_json::Value;

/// Replaces the home folder, the user's name in paths, and the host's name.
pub struct Privacy {
    replaced: Vec<(String, &'static str)>,
}

impl Privacy {
    pub fn of_this_process() -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let mut replaced = Vec::new();
        let home = variable("HOME");
        let home = home.trim_end_matches('/');
        if home.len() > 1 {
            replaced.push((home.to_owned(), "~"));
        }
        for user in [variable("USER"), variable("LOGNAME")] {
            if !user.is_empty() {
                replaced.push((format!("/{user}/"), "/<user>/"));
            }
        }
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim();
        // A shorter one would be found in ordinary words.
        if host.len() > 3 && host != "localhost" {
            replaced.push((host.to_owned(), "<host>"));
        }
        Self { replaced }
    }

    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (what, by) in &self.replaced {
            text = text.replace(what, by);
        }
        hide_builder(&hide_homes(&text))
    }

    /// All texts in a value. Keys are ours.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.value(field)),
            _ => {}
        }
    }
}

/// What follows a path's `/home/` is somebody's name.
fn hide_homes(text: &str) -> String {
    let mut parts = text.split("/home/");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("~/");
        shown.push_str(part.split_once('/').map_or("", |(_name, rest)| rest));
    }
    shown
}

/// A panic names source files as they were where this program was built: what is before cargo's own folder in such
/// a path is the home of whoever built it.
fn hide_builder(text: &str) -> String {
    const FOLDER: &str = "/.cargo/";
    let mut parts = text.split(FOLDER).peekable();
    let mut shown = String::new();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            shown.push_str(part);
        } else {
            let begin = part
                .rfind(|at: char| at.is_ascii_whitespace() || at == '"')
                .map_or(0, |at| at + 1);
            shown.push_str(&part[..begin]);
            shown.push('~');
            shown.push_str(FOLDER);
        }
    }
    shown
}
