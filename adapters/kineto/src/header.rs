//! What a trace says about itself, beside its events.

use lineage_import::{DeviceDescription, Multiprocessors};

use crate::fields::{Malformed, Members, Text, Value};
use crate::number::whole;

/// Versions that are shown, by their members' names, and how they are called.
const VERSIONS: [(&[u8], &str); 8] = [
    (b"schemaVersion", "schema"),
    (b"cupti_version", "CUPTI"),
    (b"cuda_runtime_version", "CUDA runtime"),
    (b"cuda_driver_version", "CUDA driver"),
    (b"roctracer_version", "roctracer"),
    (b"rocprofiler_version", "rocprofiler"),
    (b"hip_runtime_version", "HIP runtime"),
    (b"hip_driver_version", "HIP driver"),
];

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// What times are relative to, since 2024.
    pub(crate) base_ns: Option<u64>,
    /// The rank of the process in a distributed job.
    pub(crate) rank: Option<u32>,
    /// Devices with their names.
    pub(crate) devices: Vec<DeviceDescription>,
    versions: [Option<String>; VERSIONS.len()],
}

impl Header {
    /// Takes a member of the trace. `false` if it is one that is read, and could not be.
    pub(crate) fn take(&mut self, key: &[u8], text: &[u8]) -> bool {
        let value = Self::value(text);
        match key {
            b"baseTimeNanoseconds" => {
                self.base_ns = value.and_then(number);
                self.base_ns.is_some()
            }
            b"distributedInfo" => match value {
                Some(Value::Object(info)) => self.take_distributed_info(info).is_ok(),
                _ => false,
            },
            b"deviceProperties" => match value {
                Some(Value::Array(devices)) => self.take_devices(devices).is_ok(),
                _ => false,
            },
            _ => {
                let known = VERSIONS.iter().position(|(name, _)| *name == key);
                if let Some(index) = known {
                    self.versions[index] = value.and_then(version);
                    return self.versions[index].is_some();
                }
                true
            }
        }
    }

    /// The versions in words: `schema 1, CUPTI 130100`.
    pub(crate) fn versions(&self) -> Option<String> {
        let words: Vec<_> = VERSIONS
            .iter()
            .zip(&self.versions)
            .filter_map(|((_, name), version)| Some(format!("{name} {}", version.as_ref()?)))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// The text as a value.
    fn value(text: &[u8]) -> Option<Value<'_>> {
        Some(match text.first()? {
            b'{' => Value::Object(text),
            b'[' => Value::Array(text),
            b'"' => Value::Text(Text::of_quoted(text)),
            _ => Value::Bare(text),
        })
    }

    fn take_distributed_info(&mut self, info: &[u8]) -> Result<(), Malformed> {
        let mut members = Members::of_object(info);
        while let Some(key) = members.next_key()? {
            let value = members.value()?;
            if key.as_ref() == b"rank" {
                self.rank = number(value);
            }
        }
        Ok(())
    }

    fn take_devices(&mut self, devices: &[u8]) -> Result<(), Malformed> {
        /// A machine has fewer; a list of more is not believed.
        const DEVICES_AT_MOST: usize = 1024;
        let mut elements = Members::of_array(devices);
        while let Some(element) = elements.next_element()? {
            let Value::Object(device) = element else {
                return Err(Malformed);
            };
            let (mut ordinal, mut name) = (None, None);
            let mut multiprocessors = Multiprocessors::default();
            let mut members = Members::of_object(device);
            while let Some(key) = members.next_key()? {
                match (key.as_ref(), members.value()?) {
                    (b"id", value) => ordinal = number(value),
                    (b"numSms", value) => multiprocessors.count = number(value),
                    (b"maxThreadsPerMultiprocessor", value) => {
                        multiprocessors.threads = number(value);
                    }
                    (b"regsPerMultiprocessor", value) => {
                        multiprocessors.registers = number(value);
                    }
                    (b"sharedMemPerMultiprocessor", value) => {
                        multiprocessors.shared_bytes = number(value);
                    }
                    (b"name", Value::Text(text)) if !text.raw().is_empty() => {
                        name = Some(text.decode().into_owned());
                    }
                    _ => {}
                }
            }
            let ordinal = ordinal.ok_or(Malformed)?;
            if self.devices.len() == DEVICES_AT_MOST {
                return Err(Malformed);
            }
            self.devices.push(DeviceDescription {
                process: None,
                ordinal,
                name,
                copy_engines: None,
                // Kineto does not say how many blocks one holds.
                multiprocessors,
            });
        }
        Ok(())
    }
}

fn number<N: TryFrom<i128>>(value: Value<'_>) -> Option<N> {
    whole(value).ok().and_then(|number| number.try_into().ok())
}

/// A version as it is written: roctracer's is `4.1`.
fn version(value: Value<'_>) -> Option<String> {
    const LONGEST: usize = 32;
    let text = match value {
        Value::Bare(text) => String::from_utf8_lossy(text),
        Value::Text(text) => text.decode(),
        Value::Object(_) | Value::Array(_) => return None,
    };
    (text.len() <= LONGEST).then(|| text.into_owned())
}
