//! The folder of answers: one file for each question, and the summary, rewritten after each of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::check::privacy::Privacy;
use crate::check::scenarios::PREFIX;

/// Rises when the meaning of a field changes.
const SCHEMA: u32 = 1;

pub(super) struct Written {
    folder: PathBuf,
    privacy: Privacy,
    summary: Value,
    counts: [(&'static str, usize); 4],
}

impl Written {
    pub(super) fn new(folder: &Path, switches: Value, gpu: &str) -> Result<Self, String> {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("the folder {} cannot be made: {error}", folder.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
            privacy: Privacy::of_this_process(),
            summary: json!({
                "schema": SCHEMA,
                "program": format!("device_check {}", env!("CARGO_PKG_VERSION")),
                "gpu": gpu,
                "simulator": switches,
                "complete": false,
                "machine": null,
                "questions": {},
            }),
            counts: [
                ("answered", 0),
                ("skipped", 0),
                ("failed", 0),
                ("timed_out", 0),
            ],
        })
    }

    pub(super) fn machine(&mut self, mut machine: Value) -> Result<(), String> {
        self.privacy.value(&mut machine);
        let word = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        println!("gpu      {}", word(&machine["gpu"]));
        println!("driver   {}", word(&machine["driver_version"]));
        println!(
            "cupti    {} {}",
            machine["cupti"]["cupti_version"],
            word(&machine["cupti"]["cupti_path"])
        );
        println!("cudart   {}\n", word(&machine["cudart"]));
        self.summary["machine"] = machine;
        self.write_summary()
    }

    /// What came of a question: the whole of it into its file, all but the records into the summary.
    pub(super) fn question(
        &mut self,
        name: &str,
        asks: &str,
        mut outcome: Value,
        took: Duration,
    ) -> Result<(), String> {
        self.privacy.value(&mut outcome);
        let status = outcome["status"].as_str().unwrap_or("failed").to_owned();
        for (known, count) in &mut self.counts {
            *count += usize::from(*known == status);
        }
        let seconds = (took.as_secs_f64() * 1000.0).round() / 1000.0;
        let mut file = json!({ "question": name, "asks": asks, "seconds": seconds });
        let mut short = Map::new();
        if let (Some(file), Some(outcome)) = (file.as_object_mut(), outcome.as_object()) {
            file.extend(outcome.clone());
            for key in ["asks", "status", "error", "answer", "measured", "seconds"] {
                if let Some(value) = file.get(key).filter(|value| !value.is_null()) {
                    short.insert(key.to_owned(), value.clone());
                }
            }
        }
        // A scenario's answer is long; how many records of each kind it has says enough here.
        let shown = match &outcome["answer"] {
            answer if name.starts_with(PREFIX) => &answer["counts"],
            answer => answer,
        };
        let said = outcome["error"]
            .as_str()
            .map_or_else(|| shown.to_string(), str::to_owned);
        println!("{name:<34} {status:<9} {seconds:>7.3} s  {said}");
        self.write(&format!("{name}.json"), &file)?;
        self.summary["questions"][name] = Value::Object(short);
        self.write_summary()
    }

    /// The end; how many questions have no answer though they could be asked.
    pub(super) fn finish(mut self, took: Duration) -> Result<usize, String> {
        self.summary["complete"] = true.into();
        self.summary["seconds"] = took.as_secs_f64().into();
        self.write_summary()?;
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(status, count)| format!("{count} {status}"))
            .collect();
        println!("\n{} in {:.1} s", counts.join(", "), took.as_secs_f64());
        Ok(self.counts[2].1 + self.counts[3].1)
    }

    fn write_summary(&mut self) -> Result<(), String> {
        let counts = self
            .counts
            .iter()
            .map(|(status, count)| ((*status).to_owned(), (*count).into()));
        self.summary["counts"] = Value::Object(counts.collect());
        self.write("summary.json", &self.summary)
    }

    /// Appears whole or not at all.
    fn write(&self, name: &str, value: &Value) -> Result<(), String> {
        let path = self.folder.join(name);
        let new = self.folder.join(format!(".{name}"));
        let text = serde_json::to_string_pretty(value).unwrap_or_default() + "\n";
        std::fs::write(&new, text)
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }
}
