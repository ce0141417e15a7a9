//! What was recorded, told so that two machines can be compared.
//!
//! A record is known by its call and by what the scenario chose for it: `kernel tick 2 of cuLaunchKernel 1` is the record of a
//! kernel `tick` of 2 blocks that the first `cuLaunchKernel` asked for. Ids are numbered in the order of calls; times are told
//! as what is 0, and as who ended before whom began.

use std::collections::{BTreeMap, HashMap, HashSet};

use lineage_cupti::sys::codes::{domain, kind};
use lineage_cupti::sys::layout::{api, external};
use serde_json::{Map, Value, json};

use super::fields::{As, Raw, Told};

/// An API call.
struct Call {
    /// Its function, and the how manieth call of it: `cuLaunchKernel 2`.
    name: String,
    start: u64,
    correlation: u32,
    result: u64,
}

pub struct Recorded {
    calls: Vec<Call>,
    /// Correlation ids that have the scenario's external id, as often as they have it.
    external: Vec<u32>,
    others: Vec<Raw>,
}

impl Recorded {
    /// Sorts out what CUPTI gave; `id` is the scenario's external id, and `name_of` names a function by its domain and number.
    pub fn new(records: Vec<Raw>, id: u64, name_of: impl Fn(u32, u32) -> String) -> Self {
        let mut told = Self {
            calls: Vec::new(),
            external: Vec::new(),
            others: Vec::new(),
        };
        for record in records {
            let u32 = |offset| record.number(offset, 4) as u32;
            match record.kind() {
                number @ (kind::DRIVER | kind::RUNTIME) => {
                    let of = if number == kind::DRIVER {
                        domain::DRIVER_API
                    } else {
                        domain::RUNTIME_API
                    };
                    told.calls.push(Call {
                        name: name_of(of, u32(api::CBID)),
                        start: record.number(api::START, 8),
                        correlation: u32(api::CORRELATION_ID),
                        result: record.number(api::RETURN_VALUE, 4),
                    });
                }
                kind::EXTERNAL_CORRELATION => {
                    if record.number(external::EXTERNAL_ID, 8) == id {
                        told.external.push(u32(external::CORRELATION_ID));
                    }
                }
                _ => told.others.push(record),
            }
        }
        told.calls.sort_by_key(|call| call.start);
        let mut calls_of: HashMap<String, u32> = HashMap::new();
        for call in &mut told.calls {
            let number = calls_of.entry(call.name.clone()).or_default();
            *number += 1;
            call.name = format!("{} {number}", call.name);
        }
        told
    }

    /// The answer of the scenario.
    pub fn tell(&self) -> Value {
        let place: HashMap<u32, usize> = self
            .calls
            .iter()
            .enumerate()
            .map(|(place, call)| (call.correlation, place))
            .collect();
        // In the order of calls, and of their labels: not of times, which may be otherwise on another machine.
        let mut known: Vec<(&Raw, &Told)> = self
            .others
            .iter()
            .filter_map(|raw| Some((raw, raw.told()?)))
            .collect();
        known.sort_by_key(|(raw, told)| {
            let correlation = raw.number(told.correlation, 4) as u32;
            let start = told.times.map_or(0, |(start, _)| raw.number(start, 8));
            let place = place.get(&correlation).copied().unwrap_or(usize::MAX);
            (place, told.kind, label(raw, told), start)
        });

        let mut names = Names::default();
        let mut ordinals = Ordinals::default();
        let mut records = Map::new();
        for call in &self.calls {
            let own = |id: &&u32| **id == call.correlation;
            let told = json!({ "result": call.result, "externalIds": self.external.iter().filter(own).count() });
            records.insert(format!("call of {}", call.name), told);
        }
        let mut spans = Vec::new();
        for (raw, told) in known {
            let correlation = raw.number(told.correlation, 4) as u32;
            let call = place.get(&correlation).map(|&place| &self.calls[place]);
            let name = names.unique(name(raw, told, call, correlation));
            let mut fields = Map::new();
            for field in told.fields.iter().filter(|field| raw.has(field)) {
                let number = raw.number(field.offset, field.bytes);
                let value = match field.told {
                    As::Number => json!(number),
                    As::IsZero if number == 0 => json!("zero"),
                    As::IsZero => json!("not zero"),
                    As::Ordinal(sort) => ordinals.of(sort, number, field.bytes),
                };
                fields.insert(field.name.to_owned(), value);
            }
            if let Some(agrees) = node_is_of_graph(raw, told) {
                fields.insert("upperHalfOfNodeIsGraph".to_owned(), json!(agrees));
            }
            if let Some((start, end)) = told.times {
                let (start, end) = (raw.number(start, 8), raw.number(end, 8));
                if let Some(call) = call {
                    let is_behind = start >= call.start;
                    fields.insert("startsBehindItsCallsStart".to_owned(), json!(is_behind));
                }
                spans.push((name.clone(), start, end));
            }
            records.insert(name, fields.into());
        }
        json!({
            "records": records,
            "order": order(&spans),
            "callsInOrder": self.calls.iter().map(|call| &call.name).collect::<Vec<_>>(),
            "correlationIdsRise": self.calls.windows(2).all(|pair| pair[0].correlation < pair[1].correlation),
            "correlationIdsComeOnce": place.len() == self.calls.len(),
            "counts": self.counts(),
        })
    }

    /// Records by kind, as NVIDIA numbers them where this program has no word.
    fn counts(&self) -> Value {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        counts.insert("call".to_owned(), self.calls.len());
        for raw in &self.others {
            let word = raw.told().map(|told| told.word.to_owned());
            let word = word.unwrap_or_else(|| format!("kind {}", raw.kind()));
            *counts.entry(word).or_default() += 1;
        }
        json!(counts)
    }
}

fn label(raw: &Raw, told: &Told) -> Option<u64> {
    let (offset, bytes) = told.label?;
    Some(raw.number(offset, bytes))
}

/// Whether the upper half of a node's id is its graph's id, as NVIDIA's header says; none for what is of no graph.
fn node_is_of_graph(raw: &Raw, told: &Told) -> Option<bool> {
    let number = |name: &str| {
        let field = told.fields.iter().find(|field| field.name == name)?;
        Some(raw.number(field.offset, field.bytes)).filter(|number| *number != 0)
    };
    Some(number("graphNodeId")? >> 32 == number("graphId")?)
}

/// What a record is known by.
fn name(raw: &Raw, told: &Told, call: Option<&Call>, correlation: u32) -> String {
    let mut name = told.word.to_owned();
    if let Some(kernel) = &raw.name {
        name = format!("{name} {kernel}");
    }
    if let Some(label) = label(raw, told) {
        name = format!("{name} {label}");
    }
    match call {
        Some(call) => format!("{name} of {}", call.name),
        None if correlation == 0 => format!("{name} without correlation id"),
        None => format!("{name} of no recorded call"),
    }
}

/// Names that come once.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    fn unique(&mut self, name: String) -> String {
        let mut candidate = name.clone();
        let mut number = 1;
        while !self.0.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}, once more ({number})");
        }
        candidate
    }
}

/// Ids by sort, numbered from 1 as they come.
#[derive(Default)]
struct Ordinals(HashMap<&'static str, Vec<u64>>);

impl Ordinals {
    fn of(&mut self, sort: &'static str, id: u64, bytes: usize) -> Value {
        let all_ones = u64::MAX >> (64 - 8 * bytes.clamp(1, 8));
        if id == 0 {
            return json!(0);
        }
        // NVIDIA's own sign for "none" has 32 bits, in fields of 64 as well.
        if id == all_ones || id == u64::from(u32::MAX) {
            return json!("invalid");
        }
        let known = self.0.entry(sort).or_default();
        let place = known.iter().position(|other| *other == id);
        let place = place.unwrap_or_else(|| {
            known.push(id);
            known.len() - 1
        });
        json!(format!("{sort} {}", place + 1))
    }
}

/// For each two that ran: which ended before the other began.
fn order(spans: &[(String, u64, u64)]) -> Value {
    let mut order = Map::new();
    for (index, (first, start, end)) in spans.iter().enumerate() {
        let mut others = Map::new();
        for (second, other_start, other_end) in &spans[index + 1..] {
            let relation = if [start, end, other_start, other_end].contains(&&0) {
                "at an unknown time"
            } else if end <= other_start {
                "before"
            } else if other_end <= start {
                "behind"
            } else {
                "beside"
            };
            others.insert(second.clone(), json!(relation));
        }
        if !others.is_empty() {
            order.insert(first.clone(), others.into());
        }
    }
    order.into()
}
