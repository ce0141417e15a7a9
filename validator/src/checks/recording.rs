//! The recording itself: `L07`, and `W05` and `W07` where the interface was used wrongly.

use lineage_core::fault::FaultCode;
use lineage_core::observation::MisuseKind;

use crate::derive::Process;
use crate::describe::attribution;
use crate::finding::{About, EvidenceLine, Finding, Findings};
use crate::validation::Counts;

pub(super) fn check(process: &Process<'_>, counts: &mut Counts, findings: &mut Findings) {
    counts.not_examined += process.gathered.not_examined;
    records_lost(process, counts, findings);
    misuses(process, findings);
    for thread in process.threads.iter() {
        let missing = thread.scopes_without_end();
        if missing > 0 {
            findings.raise_many(FaultCode::W07, missing, || {
                let detail = format!("the thread ended, and {missing} of its scopes never did");
                Finding::new(
                    FaultCode::W07,
                    process.ordinal,
                    About::Thread(thread.key),
                    detail,
                )
                .at(thread.ended)
            });
        }
    }
}

fn records_lost(process: &Process<'_>, counts: &mut Counts, findings: &mut Findings) {
    for seen in &process.gathered.gaps {
        let gap = seen.what;
        counts.records_dropped = counts.records_dropped.saturating_add(gap.count);
        findings.raise_many(FaultCode::L07, gap.count.max(1), || {
            let thread = process.thread(gap.thread);
            let detail = format!(
                "{} records of {thread} were lost: its ring was full",
                gap.count
            );
            let between = match (gap.not_before, gap.not_after) {
                (Some(from), Some(to)) => {
                    format!("between {} and {}", process.time(from), process.time(to))
                }
                (Some(from), None) => format!("after {}", process.time(from)),
                (None, Some(to)) => format!("before {}", process.time(to)),
                (None, None) => "at an unknown time".to_owned(),
            };
            Finding::new(
                FaultCode::L07,
                process.ordinal,
                About::Thread(gap.thread),
                detail,
            )
            .at(gap.not_before.or(gap.not_after))
            .evidence(vec![EvidenceLine {
                label: "gap",
                text: between,
            }])
        });
    }
    for seen in &process.gathered.drops {
        let dropped = seen.what;
        counts.records_dropped = counts.records_dropped.saturating_add(dropped.count);
        findings.raise_many(FaultCode::L07, dropped.count.max(1), || {
            let site = format!("{:?}", dropped.site);
            let detail = format!("{} records were lost, counted at {site}", dropped.count);
            Finding::new(FaultCode::L07, process.ordinal, About::Recording, detail)
                .at(Some(dropped.at))
        });
    }
}

fn misuses(process: &Process<'_>, findings: &mut Findings) {
    for seen in &process.gathered.misuses {
        let misuse = seen.what;
        let (code, detail) = match misuse.kind {
            MisuseKind::ForeignExternalId => (
                FaultCode::W05,
                format!(
                    "{:#x} was on CUPTI's stack where our own id was due",
                    misuse.value
                ),
            ),
            MisuseKind::ScopeLeaked => (
                FaultCode::W07,
                "a scope was still open when its thread ended".to_owned(),
            ),
            MisuseKind::ScopeAcrossTasks => (
                FaultCode::W07,
                "a scope was entered in one task, and in another it ended or was taken along"
                    .to_owned(),
            ),
            _ => (
                FaultCode::W07,
                "a scope was ended that is not open on its thread".to_owned(),
            ),
        };
        findings.raise(code, || {
            let mut evidence = vec![
                EvidenceLine {
                    label: "thread",
                    text: format!(
                        "{}, {}",
                        process.thread(misuse.thread),
                        process.time(misuse.at)
                    ),
                },
                EvidenceLine {
                    label: "scope",
                    text: attribution(misuse.attribution),
                },
            ];
            if let Some(epoch) = misuse.attribution.epoch() {
                evidence.extend(process.epoch_evidence(epoch));
            }
            Finding::new(code, process.ordinal, About::Thread(misuse.thread), detail)
                .at(Some(misuse.at))
                .evidence(evidence)
        });
    }
}
