//! Which kinds of evidence a file has, and what stays open for those it lacks.

use serde::Serialize;

use super::held::Tally;
use crate::input::Format;

/// Whether a kind of evidence is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Presence {
    Here,
    /// For some of what it could be of.
    InPart,
    Missing,
}

impl Presence {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::InPart => "in part",
            Self::Missing => "missing",
        }
    }
}

/// One kind of evidence.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Evidence {
    /// Stable name.
    pub(super) name: &'static str,
    pub(super) presence: Presence,
    /// Records of it.
    pub(super) count: u64,
    /// What stays open where it is not here.
    pub(super) leaves_open: Option<&'static str>,
}

/// How many of how many there are.
fn part(count: u64, of: u64) -> Presence {
    match count {
        0 => Presence::Missing,
        _ if count < of => Presence::InPart,
        _ => Presence::Here,
    }
}

/// Each kind of evidence that a file of this format could have.
pub(super) fn evidence(format: Format, tally: &Tally) -> Vec<Evidence> {
    let live = format == Format::Ledger;
    let mut all = Vec::new();
    let mut say = |name, presence, count, leaves_open| {
        let leaves_open = (presence != Presence::Here).then_some(leaves_open);
        all.push(Evidence {
            name,
            presence,
            count,
            leaves_open,
        });
    };
    let here = |count| part(count, 1);
    if live {
        say(
            "epochs",
            here(tally.epochs),
            tally.epochs,
            "whose request any work was: nothing was declared",
        );
        say(
            "handoffs",
            here(tally.handoffs),
            tally.handoffs,
            "how epochs came to the threads that launch",
        );
    }
    say(
        "calls",
        here(tally.api_calls),
        tally.api_calls,
        "who asked for the work, when, and on which thread",
    );
    let timed = tally
        .operations
        .saturating_sub(tally.operations_without_times);
    say(
        "operations",
        here(tally.operations),
        tally.operations,
        "what the device did, and so every join",
    );
    if tally.operations > 0 {
        say(
            "operation times",
            part(timed, tally.operations),
            timed,
            "when work without times ran; it is joined all the same",
        );
    }
    if live {
        say(
            "callbacks",
            here(tally.callbacks),
            tally.callbacks,
            "the epoch on the thread at each call: one of two sources of a join",
        );
        say(
            "external ids",
            here(tally.external_ids),
            tally.external_ids,
            "what CUPTI saw of the epochs: the other source of a join",
        );
    }
    let results = if tally.results_recorded {
        tally.api_calls
    } else {
        0
    };
    say(
        "call results",
        here(results),
        results,
        "which launches failed: without it those cannot be told from lost ones",
    );
    say(
        "submissions",
        part(tally.submissions, tally.operations),
        tally.submissions,
        "when work went to the device: waiting for that and for a dependency look alike",
    );
    say(
        "waits",
        here(tally.synchronizations),
        tally.synchronizations,
        "what threads and streams waited for",
    );
    if tally.synchronizations > 0 {
        say(
            "event links",
            here(tally.linked_waits),
            tally.linked_waits,
            "which earlier work an event that is waited for stands for",
        );
    }
    say(
        "event times",
        here(tally.event_times),
        tally.event_times,
        "when events completed on the device: only bounded by the work before them",
    );
    if tally.graph_launches + tally.graph_replays + tally.captures + tally.whole_graphs > 0 {
        say(
            "graph nodes",
            if tally.whole_graphs > 0 {
                part(tally.graph_node_operations, u64::MAX)
            } else {
                here(tally.graph_node_operations)
            },
            tally.graph_node_operations,
            if tally.whole_graphs > 0 {
                "what ran inside graphs that were recorded whole: record with --cuda-graph-trace=node"
            } else {
                "which node of its graph an operation was"
            },
        );
        if live {
            say(
                "graph replays",
                part(tally.graph_replays, tally.graph_launches),
                tally.graph_replays,
                "which executable graph a launch means, and so who built what it ran",
            );
        }
        say(
            "node origins",
            here(tally.graph_nodes),
            tally.graph_nodes,
            if live {
                "who built a node"
            } else {
                "which call made a node: launches are perhaps captured, and the order alone tells templates, inferred"
            },
        );
    }
    if !live {
        say(
            "ranges",
            here(tally.ranges),
            tally.ranges,
            "what the program was doing: there is nothing to make candidate epochs of",
        );
        if tally.ranges > 0 {
            say(
                "request ids",
                here(tally.requests),
                tally.requests,
                "whose request work was, but for ranges that say it by their names",
            );
        }
    }
    say(
        "scheduler",
        here(tally.scheduled),
        tally.scheduled,
        "whether a thread that submitted late was off its processor",
    );
    say(
        "system calls",
        here(tally.os_calls),
        tally.os_calls,
        "what threads blocked in",
    );
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'e>(all: &'e [Evidence], name: &str) -> &'e Evidence {
        let found = all.iter().find(|of| of.name == name);
        found.unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn what_is_missing_says_what_it_leaves_open() {
        let tally = Tally {
            api_calls: 10,
            operations: 4,
            operations_without_times: 1,
            submissions: 4,
            ..Tally::default()
        };
        let all = evidence(Format::Kineto, &tally);
        assert_eq!(named(&all, "calls").presence, Presence::Here);
        assert_eq!(named(&all, "operation times").presence, Presence::InPart);
        assert_eq!(named(&all, "operation times").count, 3);
        assert_eq!(named(&all, "submissions").presence, Presence::Here);
        let results = named(&all, "call results");
        assert_eq!(results.presence, Presence::Missing);
        assert!(
            results
                .leaves_open
                .is_some_and(|text| text.contains("failed"))
        );
        assert!(
            all.iter().all(|of| of.name != "epochs"),
            "imports declare none"
        );
        assert!(
            all.iter()
                .all(|of| of.leaves_open.is_none() == (of.presence == Presence::Here))
        );
    }

    #[test]
    fn graphs_that_were_recorded_whole_hide_their_nodes() {
        let tally = Tally {
            graph_launches: 2,
            whole_graphs: 2,
            operations: 2,
            ..Tally::default()
        };
        let all = evidence(Format::NsightSystems, &tally);
        let nodes = named(&all, "graph nodes");
        assert_eq!(nodes.presence, Presence::Missing);
        assert!(
            nodes
                .leaves_open
                .is_some_and(|text| text.contains("--cuda-graph-trace=node"))
        );
    }
}
