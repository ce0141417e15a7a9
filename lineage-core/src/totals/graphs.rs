//! Counts of graphs, their launches, and of the nodes that ran in them.

use crate::evidence::Why;
use crate::row::Template;

/// Graphs, their launches, and the rows of nodes by what is known of their templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct GraphCounts {
    /// Graphs that were made, by capture, by hand or as the copy of another.
    pub graphs: u64,
    /// Graphs that were instantiated: executable ones.
    pub executables: u64,
    /// Launches of executable graphs, those that failed among them.
    pub launches: u64,
    /// Changes of graphs that are known to be lost.
    pub changes_lost: u64,
    /// Rows whose node's template is known.
    pub known: u64,
    /// Rows whose node's template follows by a rule.
    pub inferred: u64,
    /// Rows whose node was made before the session began to look.
    pub before_session: u64,
    /// Rows whose executable graph was updated, and nothing tells from which node this one was.
    pub exec_updated: u64,
    /// Rows of whose node something was lost.
    pub dropped: u64,
    /// Rows of whole launches, whose nodes nobody looked at.
    pub not_visible: u64,
    /// Rows of recordings that have nothing of where nodes come from.
    pub not_collected: u64,
}

/// What is known of a row's template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TemplateKind {
    Known,
    Inferred,
    Unknown(Why),
}

impl TemplateKind {
    /// `None` for a row without a node.
    pub(crate) fn of(template: &Template) -> Option<Self> {
        match template {
            Template::Known(_) => Some(Self::Known),
            Template::Inferred { .. } => Some(Self::Inferred),
            Template::Unknown {
                why: Why::NotApplicable,
            } => None,
            Template::Unknown { why } => Some(Self::Unknown(*why)),
        }
    }
}

impl GraphCounts {
    /// Rows whose template is not known, for whatever reason.
    pub const fn unknown(&self) -> u64 {
        self.before_session
            + self.exec_updated
            + self.dropped
            + self.not_visible
            + self.not_collected
    }

    /// Rows of nodes and of whole launches.
    pub const fn rows(&self) -> u64 {
        self.known + self.inferred + self.unknown()
    }

    /// Whether there was any graph at all.
    pub const fn is_empty(&self) -> bool {
        self.graphs + self.executables + self.launches + self.changes_lost + self.rows() == 0
    }

    /// The reasons for which templates are not known, with how many rows each has, where there is any.
    pub fn unknown_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("made before the session", self.before_session),
            ("executable graph updated", self.exec_updated),
            ("records lost", self.dropped),
            ("launch recorded as a whole", self.not_visible),
            ("not in the recording", self.not_collected),
        ]
        .into_iter()
        .filter(|&(_, count)| count > 0)
    }

    pub(crate) fn of(&mut self, template: TemplateKind) -> &mut u64 {
        match template {
            TemplateKind::Known => &mut self.known,
            TemplateKind::Inferred => &mut self.inferred,
            TemplateKind::Unknown(why) => match why {
                Why::BeforeSession => &mut self.before_session,
                Why::ExecUpdated => &mut self.exec_updated,
                Why::NotVisible => &mut self.not_visible,
                Why::NotCollected => &mut self.not_collected,
                _ => &mut self.dropped,
            },
        }
    }
}
