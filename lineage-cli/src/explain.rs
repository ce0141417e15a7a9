//! `lineage explain`: a page for each fault code and for each verdict.

use lineage_core::fault::FaultCode;
use lineage_core::verdict::VerdictKind;

use crate::FINE;
use crate::arguments::{Explain, Subject};
use crate::terminal::{FAULT, HEADING, Terminal};
use crate::text::wrap;

/// Prints the page of a code or verdict, or the list of all of them.
pub(crate) fn run(arguments: &Explain, terminal: &mut Terminal) -> u8 {
    let text = match arguments.code {
        Some(subject) => render(subject, terminal.width()),
        None => list(terminal.width()),
    };
    terminal.print(&text);
    FINE
}

fn list(width: usize) -> String {
    let mut out = format!("{HEADING}faults{HEADING:#}\n");
    for code in FaultCode::ALL {
        let name = code.name();
        let indent = 5 + 25;
        for (number, line) in wrap(code.summary(), width.saturating_sub(indent).max(20))
            .iter()
            .enumerate()
        {
            out += &if number == 0 {
                format!("{FAULT}{}{FAULT:#}  {name:<24} {line}\n", code.code())
            } else {
                format!("{:indent$}{line}\n", "")
            };
        }
    }
    out += &format!("\n{HEADING}verdicts{HEADING:#}\n");
    for verdict in VerdictKind::ALL {
        let indent = 22;
        for (number, line) in wrap(verdict.claimed_when(), width.saturating_sub(indent).max(20))
            .iter()
            .enumerate()
        {
            let name = if number == 0 { verdict.name() } else { "" };
            out += &format!("{name:<indent$}{line}\n");
        }
    }
    out += "\n`lineage explain CODE` says what a fault means, how it comes about, and how to find and mend it;\n\
            `lineage explain VERDICT` what a verdict rests on, what would falsify it, and what to try\n";
    out
}

/// A page: its first line is the title; lines without an indent and a full stop are headings;
/// lines that begin with four spaces are shown as they are.
fn render(subject: Subject, width: usize) -> String {
    let mut out = match subject {
        Subject::Fault(code) => format!(
            "{FAULT}{}{FAULT:#} {HEADING}{}{HEADING:#}\n",
            code.code(),
            code.name()
        ),
        Subject::Verdict(verdict) => format!("{HEADING}{verdict}{HEADING:#}\n"),
    };
    let page = match subject {
        Subject::Fault(code) => page(code),
        Subject::Verdict(verdict) => verdict_page(verdict),
    };
    for line in page.lines().skip(1) {
        if let Some(heading) = line.strip_prefix("# ") {
            out += &format!("{HEADING}{heading}{HEADING:#}\n");
        } else if line.starts_with("    ") || line.is_empty() {
            out += line;
            out.push('\n');
        } else {
            for part in wrap(line, width.saturating_sub(2)) {
                out += &format!("  {part}\n");
            }
        }
    }
    out
}

/// The page of a code.
fn page(code: FaultCode) -> &'static str {
    match code {
        FaultCode::L01 => include_str!("pages/L01.txt"),
        FaultCode::L02 => include_str!("pages/L02.txt"),
        FaultCode::L03 => include_str!("pages/L03.txt"),
        FaultCode::L04 => include_str!("pages/L04.txt"),
        FaultCode::L05 => include_str!("pages/L05.txt"),
        FaultCode::L06 => include_str!("pages/L06.txt"),
        FaultCode::L07 => include_str!("pages/L07.txt"),
        FaultCode::L08 => include_str!("pages/L08.txt"),
        FaultCode::W01 => include_str!("pages/W01.txt"),
        FaultCode::W02 => include_str!("pages/W02.txt"),
        FaultCode::W03 => include_str!("pages/W03.txt"),
        FaultCode::W04 => include_str!("pages/W04.txt"),
        FaultCode::W05 => include_str!("pages/W05.txt"),
        FaultCode::W06 => include_str!("pages/W06.txt"),
        FaultCode::W07 => include_str!("pages/W07.txt"),
        FaultCode::W08 => include_str!("pages/W08.txt"),
        FaultCode::T01 => include_str!("pages/T01.txt"),
        FaultCode::T02 => include_str!("pages/T02.txt"),
        FaultCode::T03 => include_str!("pages/T03.txt"),
        FaultCode::T04 => include_str!("pages/T04.txt"),
        _ => "\nThis version has no page for the code.\n",
    }
}

/// The page of a verdict.
fn verdict_page(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::ApplicationLate => include_str!("pages/verdicts/application_late.txt"),
        VerdictKind::SubmitterLate => include_str!("pages/verdicts/submitter_late.txt"),
        VerdictKind::BatchWait => include_str!("pages/verdicts/batch_wait.txt"),
        VerdictKind::HostWork => include_str!("pages/verdicts/host_work.txt"),
        VerdictKind::HostSyncWait => include_str!("pages/verdicts/host_sync_wait.txt"),
        VerdictKind::Allocation => include_str!("pages/verdicts/allocation.txt"),
        VerdictKind::ApiSlow => include_str!("pages/verdicts/api_slow.txt"),
        VerdictKind::SubmitWait => include_str!("pages/verdicts/submit_wait.txt"),
        VerdictKind::DependencyWait => include_str!("pages/verdicts/dependency_wait.txt"),
        VerdictKind::FalseDependency => include_str!("pages/verdicts/false_dependency.txt"),
        VerdictKind::DeviceWait => include_str!("pages/verdicts/device_wait.txt"),
        VerdictKind::Executing => include_str!("pages/verdicts/executing.txt"),
        VerdictKind::LongerThanItsKind => include_str!("pages/verdicts/longer_than_its_kind.txt"),
        VerdictKind::Expected => include_str!("pages/verdicts/expected.txt"),
        VerdictKind::Unresolved => include_str!("pages/verdicts/unresolved.txt"),
        _ => "\nThis version has no page for the verdict.\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_page_with_all_its_parts() {
        for &code in FaultCode::ALL {
            let page = page(code);
            assert_eq!(page.lines().next(), Some(code.to_string().as_str()));
            let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("# ")).collect();
            assert_eq!(
                headings,
                [
                    "# What it means",
                    "# Why it matters",
                    "# How it comes about",
                    "# How to find it",
                    "# How to mend it",
                    "# In recordings of other tools"
                ],
                "{code}"
            );
            assert!(page.len() > 500, "{code}: a page says more than that");
        }
    }

    #[test]
    fn every_verdict_has_a_page_with_all_its_parts() {
        for &verdict in VerdictKind::ALL {
            let page = verdict_page(verdict);
            assert_eq!(page.lines().next(), Some(verdict.name()));
            let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("# ")).collect();
            assert_eq!(
                headings,
                [
                    "# What it means",
                    "# When it is claimed",
                    "# What would falsify it",
                    "# What to collect",
                    "# What to try",
                    "# Where it misleads"
                ],
                "{verdict}"
            );
            assert!(page.len() > 500, "{verdict}: a page says more than that");
        }
    }

    #[test]
    fn pages_fit_a_narrow_terminal_but_for_code() {
        let faults = FaultCode::ALL.iter().map(|code| Subject::Fault(*code));
        let verdicts = VerdictKind::ALL.iter().map(|of| Subject::Verdict(*of));
        for subject in faults.chain(verdicts) {
            for line in render(subject, 60)
                .lines()
                .filter(|line| !line.starts_with("    "))
            {
                assert!(console::measure_text_width(line) <= 60, "{line}");
            }
        }
    }
}
