//! How the stages of a row are known, as a text: `observed:cupti_api`, `unknown:not_collected`.

use lineage_core::evidence::{Evidence, Rule, TimeSource, Why};
use lineage_core::id::HostNanos;

use crate::port::{variant_name, variant_of};

/// How one stage is known, its times left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum How {
    Observed(TimeSource),
    Inferred(Rule),
    Bounded(Rule),
    Unknown(Why),
}

/// How each of the nine stages is known, in order.
pub(crate) type Hows = [How; 9];

/// How these are known; `None` where that has no name here yet.
pub(crate) fn of(stages: &[Evidence; 9]) -> Option<Hows> {
    let mut hows = [How::Unknown(Why::Pending); 9];
    for (how, stage) in hows.iter_mut().zip(stages) {
        *how = match *stage {
            Evidence::Observed { source, .. } => How::Observed(source),
            Evidence::Inferred { rule, .. } => How::Inferred(rule),
            Evidence::Bounded { rule, .. } => How::Bounded(rule),
            Evidence::Unknown { why } => How::Unknown(why),
            _ => return None,
        };
    }
    Some(hows)
}

/// The nine as one text.
pub(crate) fn to_text(hows: &Hows) -> String {
    let texts: Vec<String> = hows
        .iter()
        .map(|how| match how {
            How::Observed(source) => format!("observed:{}", variant_name(source)),
            How::Inferred(rule) => format!("inferred:{}", variant_name(rule)),
            How::Bounded(rule) => format!("bounded:{}", variant_name(rule)),
            How::Unknown(why) => format!("unknown:{}", variant_name(why)),
        })
        .collect();
    texts.join(" ")
}

/// The nine from their text; `None` if it holds what this build does not know.
pub(crate) fn from_text(text: &str) -> Option<Hows> {
    let mut hows = [How::Unknown(Why::Pending); 9];
    let mut texts = text.split(' ');
    for how in &mut hows {
        // Names may have a colon of their own: `import:nsys`.
        let (kind, name) = texts.next()?.split_once(':')?;
        *how = match kind {
            "observed" => How::Observed(variant_of(name)?),
            "inferred" => How::Inferred(variant_of(name)?),
            "bounded" => How::Bounded(variant_of(name)?),
            "unknown" => How::Unknown(variant_of(name)?),
            _ => return None,
        };
    }
    texts.next().is_none().then_some(hows)
}

/// The upper bounds of stages that are bounded, as `STAGE=NS` with a space between; `None` if there
/// are none. Stages are numbered from 0.
pub(crate) fn upper_bounds(stages: &[Evidence; 9]) -> Option<String> {
    let bounds: Vec<String> = stages
        .iter()
        .enumerate()
        .filter_map(|(at, stage)| match stage {
            Evidence::Bounded {
                not_after: Some(not_after),
                ..
            } => Some(format!("{at}={}", not_after.0)),
            _ => None,
        })
        .collect();
    (!bounds.is_empty()).then(|| bounds.join(" "))
}

/// The upper bounds from their text; `None` if it is not of that form.
pub(crate) fn read_upper_bounds(text: Option<&str>) -> Option<[Option<HostNanos>; 9]> {
    let mut bounds = [None; 9];
    for part in text
        .unwrap_or_default()
        .split(' ')
        .filter(|part| !part.is_empty())
    {
        let (at, ns) = part.split_once('=')?;
        *bounds.get_mut(at.parse::<usize>().ok()?)? = Some(HostNanos(ns.parse().ok()?));
    }
    Some(bounds)
}
