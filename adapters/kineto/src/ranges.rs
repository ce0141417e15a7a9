//! Intervals whose beginning and end are events of their own (`B` and `E`). Kineto writes none;
//! tools that rewrite its traces do.

use std::collections::HashMap;

use crate::fields::Value;

/// Bytes of text of events that have begun and not ended, beyond which no more are kept.
const OPEN_BYTES: usize = 16 * 1024 * 1024;
/// What an open event takes beside its text.
const ENTRY_BYTES: usize = 64;

/// An event that began on a thread: its text, or `None` of one that no join needs.
pub(crate) type Begun = Option<Box<[u8]>>;

/// What has begun on each thread and not ended: the last to begin is the first to end.
#[derive(Debug, Default)]
pub(crate) struct OpenRanges {
    threads: HashMap<Box<[u8]>, Vec<Begun>>,
    bytes: usize,
}

impl OpenRanges {
    /// An event begins. `false` if there is no room to remember it.
    pub(crate) fn begin(
        &mut self,
        process: Option<Value<'_>>,
        thread: Option<Value<'_>>,
        event: Option<&[u8]>,
    ) -> bool {
        let key = key(process, thread);
        let bytes = size(event) + key.len();
        if self.bytes + bytes > OPEN_BYTES {
            return false;
        }
        self.bytes += bytes;
        self.threads
            .entry(key)
            .or_default()
            .push(event.map(Into::into));
        true
    }

    /// The event that began last on this thread ends; `None` if none has begun.
    pub(crate) fn end(
        &mut self,
        process: Option<Value<'_>>,
        thread: Option<Value<'_>>,
    ) -> Option<Begun> {
        let key = key(process, thread);
        let open = self.threads.get_mut(&key)?;
        let begun = open.pop()?;
        if open.is_empty() {
            self.threads.remove(&key);
        }
        self.bytes -= size(begun.as_deref()) + key.len();
        Some(begun)
    }

    /// All that never ended.
    pub(crate) fn take_open(&mut self) -> impl Iterator<Item = Begun> + use<> {
        self.bytes = 0;
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        threads.into_iter().flat_map(|(_, open)| open)
    }
}

fn size(event: Option<&[u8]>) -> usize {
    ENTRY_BYTES + event.map_or(0, <[u8]>::len)
}

/// A thread as the file writes it, whatever it writes.
fn key(process: Option<Value<'_>>, thread: Option<Value<'_>>) -> Box<[u8]> {
    /// More of a thread's name than this tells no threads apart.
    const LONGEST: usize = 256;
    let mut key = Vec::new();
    for part in [process, thread] {
        let text = match part {
            Some(Value::Bare(text) | Value::Object(text) | Value::Array(text)) => text,
            Some(Value::Text(text)) => text.raw(),
            None => b"",
        };
        key.extend_from_slice(&text[..text.len().min(LONGEST)]);
        key.push(b'"');
    }
    key.into_boxed_slice()
}
