//! What a call asks for, by the name of its function.
//!
//! CUDA's driver and runtime interfaces and HIP's. A name may carry what recorders append: the
//! version of the parameters' struct (`cudaLaunchKernel_v7000`), the variant for per-thread streams
//! (`_ptsz`, `_ptds`). A function that is not known asks for no work: matching is by correlation id,
//! so an operation of it still finds it.

use lineage_core::observation::{ApiDomain, OperationsDue};

/// What a function is, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Which interface. HIP's is counted as a runtime.
    pub domain: ApiDomain,
    /// How many operations a call has.
    pub due: OperationsDue,
    /// Whether it opens or ends the capture of a stream.
    pub capture: Option<Boundary>,
    /// Whether it launches a graph.
    pub graph_launch: bool,
}

/// An end of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// The capture begins.
    Begin,
    /// It ends.
    End,
}

/// What the function of this name is.
pub fn function(name: &str) -> Function {
    let name = plain(name);
    let (domain, rest) = if let Some(rest) = name.strip_prefix("cuda") {
        (ApiDomain::Runtime, rest)
    } else if let Some(rest) = name.strip_prefix("hip") {
        (ApiDomain::Runtime, rest)
    } else if let Some(rest) = name.strip_prefix("cu") {
        (ApiDomain::Driver, rest)
    } else {
        (ApiDomain::Runtime, "")
    };
    let capture = match rest {
        "StreamBeginCapture" | "StreamBeginCaptureToGraph" => Some(Boundary::Begin),
        "StreamEndCapture" => Some(Boundary::End),
        _ => None,
    };
    Function {
        domain,
        due: due(name, rest),
        capture,
        graph_launch: rest == "GraphLaunch",
    }
}

fn due(name: &str, rest: &str) -> OperationsDue {
    match rest {
        "GraphLaunch" => return OperationsDue::Many,
        // These make or set a graph's node, or say what a launch would be like.
        "LaunchHostFunc" => return OperationsDue::None,
        _ => {}
    }
    if rest.contains("MultiDevice") && rest.contains("Launch") {
        return OperationsDue::Many;
    }
    const LAUNCHES: [&str; 6] = [
        "Launch",
        "ModuleLaunch",
        "ExtLaunch",
        "ExtModuleLaunch",
        "HccModuleLaunch",
        "DrvLaunch",
    ];
    if LAUNCHES.iter().any(|launch| rest.starts_with(launch)) {
        return OperationsDue::One;
    }
    if rest.starts_with("Memset") {
        // Of zero bytes there is none, and the record does not say how many.
        return OperationsDue::Any;
    }
    if let Some(copy) = rest.strip_prefix("Memcpy") {
        return if goes_anywhere(name, copy) {
            OperationsDue::Any
        } else {
            OperationsDue::One
        };
    }
    OperationsDue::None
}

/// Whether a copy may stay on the host, where it is no operation, or be several.
fn goes_anywhere(name: &str, copy: &str) -> bool {
    let copy = copy.strip_suffix("Async").unwrap_or(copy);
    if copy.contains("Batch") || copy.contains("WithAttributes") || copy.is_empty() {
        return true;
    }
    let runtime = !name.starts_with("cuM");
    runtime && matches!(copy, "2D" | "3D" | "WithStream")
}

/// The name without what recorders append.
fn plain(name: &str) -> &str {
    let mut name = name.trim_start_matches('_');
    loop {
        let without = name
            .strip_suffix("_ptsz")
            .or_else(|| name.strip_suffix("_ptds"))
            .or_else(|| name.strip_suffix("_spt"))
            .unwrap_or(name);
        let digits = without.trim_end_matches(|c: char| c.is_ascii_digit());
        let without = match digits.strip_suffix("_v") {
            Some(bare) if digits.len() < without.len() => bare,
            _ => without,
        };
        if without.len() == name.len() {
            return name;
        }
        name = without;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_call_asks_for_whatever_recorders_append() {
        use OperationsDue::{Any, Many, None, One};
        for (name, due) in [
            ("cudaLaunchKernel_v7000", One),
            ("cudaLaunchKernel_ptsz_v7000", One),
            ("__cudaLaunchKernel_v13000", One),
            ("cudaLaunchKernelExC", One),
            ("cuLaunchKernelEx", One),
            ("cuLaunchCooperativeKernelMultiDevice", Many),
            ("hipExtModuleLaunchKernel", One),
            ("hipModuleLaunchKernel", One),
            ("hipGraphLaunch", Many),
            ("cudaGraphLaunch_ptsz_v10000", Many),
            ("cudaMemcpyAsync_v3020", Any),
            ("cudaMemcpy", Any),
            ("cudaMemcpyToSymbol_v3020", One),
            ("cudaMemcpyPeerAsync_v4000", One),
            ("hipMemcpyWithStream", Any),
            ("cuMemcpyHtoDAsync_v2", One),
            ("cuMemcpyAsync_ptsz", Any),
            ("cuMemcpy2DAsync_v2", One),
            ("cuMemcpyBatchAsync_v2_ptsz", Any),
            ("cudaMemsetAsync_v3020", Any),
            ("cuMemsetD32Async", Any),
            ("cudaLaunchHostFunc_v10000", None),
            ("cudaStreamWaitEvent_v3020", None),
            ("cudaEventRecord", None),
            ("cudaGraphInstantiate_v12000", None),
            ("INVALID", None),
            ("", None),
        ] {
            assert_eq!(function(name).due, due, "{name}");
        }
        assert_eq!(function("cuLaunchKernel").domain, ApiDomain::Driver);
        assert_eq!(function("cudaLaunchKernel").domain, ApiDomain::Runtime);
        assert_eq!(function("hipLaunchKernel").domain, ApiDomain::Runtime);
    }

    #[test]
    fn by_its_name_a_function_asks_for_what_it_does_by_cuptis_id() {
        let mut wrong = Vec::new();
        for domain in [ApiDomain::Driver, ApiDomain::Runtime] {
            for known in lineage_cupti::work::functions(domain) {
                let (of, due) = (function(known.name), known.work.due_by_record());
                if (of.domain, of.due) != (domain, due) {
                    wrong.push(format!("{}: {:?}, by id {due:?}", known.name, of.due));
                }
            }
        }
        for known in lineage_cupti::order::functions() {
            if function(known.name).due != OperationsDue::None {
                wrong.push(format!("{} asks for no work", known.name));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn captures_are_known_by_their_ends() {
        for (name, capture) in [
            ("hipStreamBeginCapture", Some(Boundary::Begin)),
            ("cudaStreamBeginCapture_v10000", Some(Boundary::Begin)),
            ("cuStreamBeginCapture_v2", Some(Boundary::Begin)),
            ("cudaStreamEndCapture_v10000", Some(Boundary::End)),
            ("cudaStreamIsCapturing_v10000", None),
            ("cudaStreamGetCaptureInfo_v2_v11030", None),
        ] {
            assert_eq!(function(name).capture, capture, "{name}");
        }
    }
}
