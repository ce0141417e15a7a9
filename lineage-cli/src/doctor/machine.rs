//! What the machine says of itself in files and in the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lineage_validator::printable;

use super::check::{Check, State};

type Lookup = dyn Fn(&str) -> Option<OsString>;

/// The machine's files and environment, or a test's.
pub(crate) struct Machine {
    root: PathBuf,
    variable: Box<Lookup>,
}

impl Machine {
    pub(crate) fn this() -> Self {
        Self {
            root: PathBuf::from("/"),
            variable: Box::new(|name| std::env::var_os(name)),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(root: &Path, variables: &[(&str, &str)]) -> Self {
        let variables: std::collections::HashMap<String, OsString> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        Self {
            root: root.to_owned(),
            variable: Box::new(move |name| variables.get(name).cloned()),
        }
    }

    /// A small text file, by its absolute path.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A variable of the environment that is not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    /// The driver's kernel module, in its own words: `550.54.15`.
    pub(crate) fn kernel_module(&self) -> Option<String> {
        let text = self.text("/proc/driver/nvidia/version")?;
        let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
        let version = line
            .split_whitespace()
            .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
        Some(printable(version))
    }

    /// The kind of container this runs in.
    pub(crate) fn container(&self) -> Option<&'static str> {
        if self.has("/.dockerenv") {
            return Some("docker");
        }
        if self.has("/run/.containerenv") {
            return Some("podman");
        }
        if self.variable("KUBERNETES_SERVICE_HOST").is_some() {
            return Some("kubernetes");
        }
        let groups = self.text("/proc/1/cgroup")?;
        ["docker", "kubepods", "containerd", "lxc"]
            .into_iter()
            .find(|kind| groups.contains(kind))
    }

    /// A field of `/proc/self/status`.
    fn status(&self, field: &str) -> Option<String> {
        let status = self.text("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    }

    /// Whether this process may do what needs a capability, by its number.
    fn may(&self, capability: u32) -> bool {
        let effective = self
            .status("CapEff")
            .and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        effective.is_some_and(|bits| bits >> capability & 1 == 1)
    }
}

/// The container, where there is one: what it lacks of the driver.
pub(crate) fn container(machine: &Machine) -> Option<Check> {
    let kind = machine.container()?;
    let name = "container";
    let Some(module) = machine.kernel_module() else {
        return Some(Check::new(
            name,
            State::Ok,
            format!("{kind}; the machine around it has no kernel module of NVIDIA's loaded"),
        ));
    };
    if machine.has("/dev/nvidiactl") {
        return Some(Check::new(
            name,
            State::Ok,
            format!("{kind}, with the driver's device files"),
        ));
    }
    let found = format!(
        "{kind}, on a machine with NVIDIA's kernel module {module}, without its device files (/dev/nvidiactl)"
    );
    Some(Check::new(name, State::Missing, found).next(
        "start it with a GPU: `docker run --gpus all …`, where the NVIDIA container toolkit is installed, or \
         `nvidia.com/gpu` among the limits of a pod",
    ))
}

/// Who may profile. Records of calls and operations need no counters.
pub(crate) fn permissions(machine: &Machine) -> Check {
    let name = "permissions";
    if machine.has("/etc/nv_tegra_release")
        && machine
            .status("Uid")
            .is_none_or(|ids| !ids.starts_with('0'))
    {
        return Check::new(
            name,
            State::Missing,
            "this is a Tegra, where tracing needs root",
        )
        .next("run your program as root");
    }
    let Some(parameters) = machine.text("/proc/driver/nvidia/params") else {
        return Check::new(
            name,
            State::Unknown,
            "the driver's parameters cannot be read (/proc/driver/nvidia/params)",
        );
    };
    let admin_only = parameters
        .lines()
        .find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"))
        .map(str::trim);
    match admin_only {
        Some("1") => Check::new(
            name,
            State::Ok,
            "counters are for administrators (RmProfilingAdminOnly: 1); lineage needs none",
        ),
        Some(_) => Check::new(name, State::Ok, "everybody may profile"),
        None => Check::new(
            name,
            State::Unknown,
            "the driver does not say who may profile",
        ),
    }
}

/// Other tools that would have CUPTI first.
pub(crate) fn other_tools(machine: &Machine) -> Check {
    let name = "other tools";
    const INJECTING: [&str; 3] = [
        "CUDA_INJECTION64_PATH",
        "CUDA_INJECTION32_PATH",
        "NSYS_PROFILING_SESSION_ID",
    ];
    let mut found: Vec<String> = Vec::new();
    for variable in INJECTING {
        if let Some(value) = machine.variable(variable) {
            found.push(format!(
                "{variable} is {}",
                printable(&value.to_string_lossy())
            ));
        }
    }
    if let Some(preloaded) = machine.variable("LD_PRELOAD") {
        let preloaded = preloaded.to_string_lossy().into_owned();
        let known = ["ToolsInjection", "nsys", "cupti", "kineto"];
        if known.iter().any(|tool| preloaded.contains(tool)) {
            found.push(format!("LD_PRELOAD is {}", printable(&preloaded)));
        }
    }
    if found.is_empty() {
        return Check::new(
            name,
            State::Ok,
            "none is loaded into programs started from here",
        );
    }
    Check::new(name, State::Unknown, found.join("; "))
        .unknown("that tool may have CUPTI before lineage does; before CUDA 13.2 only one can")
        .next("unset it where lineage shall record")
}

/// The clock that everything is stamped with, and what a reading costs.
pub(crate) fn clock(machine: &Machine) -> Check {
    let name = "clock";
    let source = machine.text("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.map(|source| printable(source.trim()));
    let cost = reading_ns();
    let shown = source.clone().map(|source| format!(", source {source}"));
    let check = Check::new(
        name,
        State::Ok,
        format!(
            "CLOCK_MONOTONIC, {cost} ns a reading{}",
            shown.unwrap_or_default()
        ),
    );
    // A scope takes two readings, and costs 60 ns with a clock that the kernel maps into the process.
    match source.as_deref() {
        Some("hpet" | "acpi_pm" | "jiffies") => check.next(
            "this source is slow, since each reading enters the kernel: see `dmesg | grep -i tsc` for why it is not tsc",
        ),
        _ => check,
    }
}

/// What one reading of the clock costs: the least of some rounds, in nanoseconds.
fn reading_ns() -> u128 {
    const READINGS: u32 = 2_000;
    let round = || {
        let begun = Instant::now();
        for _ in 1..READINGS {
            std::hint::black_box(Instant::now());
        }
        begun.elapsed().as_nanos() / u128::from(READINGS)
    };
    (0..5).map(|_| round()).min().unwrap_or(0)
}

/// Whether the scheduler can be watched. This version reads such records from imports only.
pub(crate) fn scheduler(machine: &Machine) -> Check {
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    let name = "scheduler";
    let paranoid = machine
        .text("/proc/sys/kernel/perf_event_paranoid")
        .and_then(|text| text.trim().parse::<i32>().ok());
    let privileged = machine.may(SYS_ADMIN) || machine.may(PERFMON);
    let filtered = machine.status("Seccomp").is_some_and(|mode| mode == "2");
    let found = match paranoid {
        None => "this kernel has no perf events".to_owned(),
        Some(level) if privileged => {
            format!(
                "a program may watch its threads' switches (privileged; perf_event_paranoid is {level})"
            )
        }
        Some(level) if level > 2 => {
            format!("a program may not watch its threads' switches: perf_event_paranoid is {level}")
        }
        Some(level) if filtered => format!(
            "perf_event_paranoid is {level}, but system calls are filtered, as in a container: perhaps this one, too"
        ),
        Some(level) => {
            format!(
                "a program may watch its own threads' switches (perf_event_paranoid is {level})"
            )
        }
    };
    let totals = if machine.has("/proc/self/schedstat") {
        "; totals in /proc/self/schedstat"
    } else {
        ""
    };
    Check::new(name, State::Unknown, format!("{found}{totals}"))
        .unknown(
            "whether a thread that submitted late was off its processor: lineage does not record the scheduler yet",
        )
        .next("an Nsight Systems recording made with `--cpuctxsw=process-tree` has it")
}

/// CUPTI libraries in places where the loader does not look, the newest toolkit first.
pub(crate) fn cupti_elsewhere(machine: &Machine) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in matching(&machine.path("/usr/local"), "cuda-") {
        found.extend(libraries(&folder.join("extras/CUPTI/lib64")));
    }
    let mut prefixes = vec![
        machine.path("/usr/local"),
        machine.path("/usr"),
        machine.path("/opt/conda"),
    ];
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(machine.variable(variable).map(PathBuf::from));
    }
    prefixes.extend(
        machine
            .variable("HOME")
            .map(|home| PathBuf::from(home).join(".local")),
    );
    for prefix in prefixes {
        found.extend(libraries(&prefix.join("lib")));
        for python in matching(&prefix.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                for package in matching(&python.join(packages).join("nvidia"), "cu") {
                    found.extend(libraries(&package.join("lib")));
                }
            }
        }
    }
    found
}

/// Folders in a folder whose names begin with this, last first.
fn matching(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning))
        .map(|entry| entry.path())
        .collect();
    found.sort_unstable();
    found.reverse();
    found
}

/// The one CUPTI library of a folder.
fn libraries(folder: &Path) -> Option<PathBuf> {
    let mut found = matching(folder, "libcupti.so");
    // The shortest name is the link to the others.
    found.sort_by_key(|path| path.as_os_str().len());
    found.into_iter().next()
}
