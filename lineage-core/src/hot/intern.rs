//! Names, detached reasons and call sites as numbers, so that a record has a fixed size.
//!
//! Everything interned is `'static`, so an address and a length identify it: a thread looks its
//! last few up in a cache of its own, and only a miss goes to the shared table.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::observation::Site;

/// A place in the source, as the compiler gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RawSite {
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl RawSite {
    pub(crate) fn new(file: &'static str, line: u32, column: u32) -> Self {
        Self { file, line, column }
    }

    pub(crate) fn of(location: &'static std::panic::Location<'static>) -> Self {
        Self {
            file: location.file(),
            line: location.line(),
            column: location.column(),
        }
    }
}

/// Numbers from 1 for the values of one type, in order of first use. 0 is "none".
struct Table<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Copy + Eq + std::hash::Hash> Table<T> {
    fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }

    fn number(table: &RwLock<Self>, value: T) -> u32 {
        let known = table
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .numbers
            .get(&value)
            .copied();
        known.unwrap_or_else(|| {
            let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
            let Self { numbers, values } = &mut *table;
            *numbers.entry(value).or_insert_with(|| {
                values.push(value);
                values.len() as u32
            })
        })
    }

    fn value(table: &RwLock<Self>, number: u32) -> Option<T> {
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        table.values.get((number as usize).checked_sub(1)?).copied()
    }
}

fn names() -> &'static RwLock<Table<&'static str>> {
    static NAMES: OnceLock<RwLock<Table<&'static str>>> = OnceLock::new();
    NAMES.get_or_init(|| RwLock::new(Table::new()))
}

fn sites() -> &'static RwLock<Table<RawSite>> {
    static SITES: OnceLock<RwLock<Table<RawSite>>> = OnceLock::new();
    SITES.get_or_init(|| RwLock::new(Table::new()))
}

fn reasons() -> &'static RwLock<Table<&'static str>> {
    static REASONS: OnceLock<RwLock<Table<&'static str>>> = OnceLock::new();
    REASONS.get_or_init(|| RwLock::new(Table::new()))
}

const CACHED: usize = 64;

type Cache = [Cell<(usize, u64, u32)>; CACHED];

thread_local! {
    static NAME_CACHE: Cache = const { [const { Cell::new((0, 0, 0)) }; CACHED] };
    static SITE_CACHE: Cache = const { [const { Cell::new((0, 0, 0)) }; CACHED] };
}

fn cached(
    cache: &'static std::thread::LocalKey<Cache>,
    address: usize,
    rest: u64,
    number: impl Fn() -> u32,
) -> u32 {
    let find = |cache: &Cache| {
        let slot = &cache[((address >> 3) ^ (rest as usize)) % CACHED];
        let (known_address, known_rest, known) = slot.get();
        if (known_address, known_rest) == (address, rest) {
            return known;
        }
        let found = number();
        slot.set((address, rest, found));
        found
    };
    cache.try_with(find).unwrap_or_else(|_| number())
}

/// Number of a name.
pub(crate) fn name(name: &'static str) -> u32 {
    cached(
        &NAME_CACHE,
        name.as_ptr() as usize,
        name.len() as u64,
        || Table::number(names(), name),
    )
}

/// Number of a call site.
pub(crate) fn site(site: RawSite) -> u32 {
    let rest = (u64::from(site.line) << 32) | u64::from(site.column);
    cached(&SITE_CACHE, site.file.as_ptr() as usize, rest, || {
        Table::number(sites(), site)
    })
}

/// Number of a detached reason.
pub(crate) fn reason(reason: &'static str) -> u32 {
    Table::number(reasons(), reason)
}

/// Numbers back to texts, for the drain thread: each text is made once.
#[derive(Default)]
pub(crate) struct Resolver {
    names: Vec<Arc<str>>,
    sites: Vec<Site>,
    reasons_told: u32,
}

impl Resolver {
    /// The name of this number.
    pub(crate) fn name(&mut self, number: u32) -> Arc<str> {
        while self.names.len() < number as usize {
            let Some(name) = Table::value(names(), self.names.len() as u32 + 1) else {
                break;
            };
            self.names.push(name.into());
        }
        let known = (number as usize)
            .checked_sub(1)
            .and_then(|at| self.names.get(at));
        known.cloned().unwrap_or_else(|| "".into())
    }

    /// The site of this number.
    pub(crate) fn site(&mut self, number: u32) -> Option<Site> {
        while self.sites.len() < number as usize {
            let raw = Table::value(sites(), self.sites.len() as u32 + 1)?;
            let file = crate_relative(raw.file).into();
            self.sites.push(Site {
                file,
                line: raw.line,
                column: raw.column,
            });
        }
        self.sites.get((number as usize).checked_sub(1)?).cloned()
    }

    /// Reasons that got their number since this was last asked.
    pub(crate) fn new_reasons(&mut self) -> Vec<(u32, &'static str)> {
        let mut new = Vec::new();
        while let Some(reason) = Table::value(reasons(), self.reasons_told + 1) {
            self.reasons_told += 1;
            new.push((self.reasons_told, reason));
        }
        new
    }
}

/// A source path without what is above its crate: an absolute path says where someone built.
fn crate_relative(path: &'static str) -> &'static str {
    let rooted = path.starts_with('/') || path.starts_with('\\') || path.get(1..2) == Some(":");
    if !rooted {
        return path;
    }
    let separator = |c: char| c == '/' || c == '\\';
    let inner = ["src", "examples", "tests", "benches"]
        .iter()
        .filter_map(|folder| {
            path.rmatch_indices(folder).map(|(at, _)| at).find(|&at| {
                path[..at].ends_with(separator) && path[at + folder.len()..].starts_with(separator)
            })
        });
    let Some(inner) = inner.max() else {
        return path.rsplit(separator).next().unwrap_or(path);
    };
    let above = path[..inner].trim_end_matches(separator);
    &path[above.rfind(separator).map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_above_the_crate_is_left_out() {
        for (path, relative) in [
            ("src/main.rs", "src/main.rs"),
            ("/home/someone/server/src/main.rs", "server/src/main.rs"),
            (
                "/home/someone/.cargo/registry/src/index-0/axum-0.8.9/src/routing/mod.rs",
                "axum-0.8.9/src/routing/mod.rs",
            ),
            (
                r"C:\Users\someone\server\src\main.rs",
                r"server\src\main.rs",
            ),
            ("/home/someone/build.rs", "build.rs"),
        ] {
            assert_eq!(crate_relative(path), relative);
        }
    }

    #[test]
    fn numbers_are_stable_and_lead_back_to_their_text() {
        let (first, second) = (name("intern-test-a"), name("intern-test-b"));
        assert_ne!(first, second);
        assert_eq!(name("intern-test-a"), first);
        let mut resolver = Resolver::default();
        assert_eq!(&*resolver.name(second), "intern-test-b");
        assert_eq!(&*resolver.name(first), "intern-test-a");
        let raw = RawSite {
            file: "src/x.rs",
            line: 3,
            column: 7,
        };
        let number = site(raw);
        assert_eq!(
            resolver
                .site(number)
                .map(|site| site.to_string())
                .as_deref(),
            Some("src/x.rs:3:7")
        );
        assert_eq!(resolver.site(0), None);
    }
}
