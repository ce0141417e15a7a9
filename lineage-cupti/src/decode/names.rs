//! Texts that CUPTI's records point to, read once and shared.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char};
use std::sync::Arc;

use lineage_core::observation::{ApiDomain, ApiId};

use crate::sys::codes::{MEMCPY_KINDS, domain};
use crate::work;

/// Distinct names that are kept; further ones are not shared. Names are a program's own and few,
/// but a program that compiles kernels at run time may make any number of them.
const KEPT_NAMES: usize = 1 << 16;
/// A longer name is cut. C++ templates make names of many kilobytes.
const NAME_BYTES: usize = 1 << 14;

/// Asks CUPTI for the name of a callback id, in CUPTI's number of the domain.
pub(crate) type AskName = dyn Fn(u32, u32) -> Option<String> + Send;

/// Names of kernels and functions.
pub(crate) struct Names {
    kept: HashSet<Arc<str>>,
    apis: HashMap<(u32, u32), Option<Arc<str>>>,
    ask: Box<AskName>,
    copies: [Arc<str>; MEMCPY_KINDS.len()],
    set: Arc<str>,
    internal: Arc<str>,
}

impl Names {
    pub(crate) fn new(ask: Box<AskName>) -> Self {
        Self {
            kept: HashSet::new(),
            apis: HashMap::new(),
            ask,
            copies: MEMCPY_KINDS.map(|kind| format!("memcpy {kind}").into()),
            set: "memset".into(),
            internal: "internal launch".into(),
        }
    }

    /// The kernel's name at this address; `None` for null.
    ///
    /// # Safety
    /// The address is 0 or that of a terminated string that lives as long as this call.
    pub(crate) unsafe fn kernel(&mut self, address: usize) -> Option<Arc<str>> {
        if address == 0 {
            return None;
        }
        let start = address as *const c_char;
        // SAFETY: by the caller's word there is a terminated string at this address.
        let bytes = unsafe { CStr::from_ptr(start) }.to_bytes();
        let bytes = &bytes[..bytes.len().min(NAME_BYTES)];
        Some(self.share(&String::from_utf8_lossy(bytes)))
    }

    /// CUPTI's name for this kind of copy.
    pub(crate) fn copy(&self, kind: u8) -> Arc<str> {
        let known = self.copies.get(usize::from(kind));
        Arc::clone(known.unwrap_or(&self.copies[0]))
    }

    /// CUPTI's name for a set.
    pub(crate) fn set(&self) -> Arc<str> {
        Arc::clone(&self.set)
    }

    /// The function of this id.
    pub(crate) fn api(&mut self, of: ApiDomain, cbid: u32) -> ApiId {
        let number = match of {
            ApiDomain::Runtime => domain::RUNTIME_API,
            _ => domain::DRIVER_API,
        };
        let ask = &self.ask;
        let name =
            self.apis
                .entry((number, cbid))
                .or_insert_with(|| match work::function(of, cbid) {
                    Some(function) => Some(function.name.into()),
                    None => ask(number, cbid).map(Arc::from),
                });
        ApiId {
            domain: of,
            cbid,
            name: name.clone(),
        }
    }

    /// What stands for a launch outside any public function: such a record has no id.
    pub(crate) fn internal_launch(&self) -> ApiId {
        ApiId {
            domain: ApiDomain::Driver,
            cbid: 0,
            name: Some(Arc::clone(&self.internal)),
        }
    }

    fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(kept) = self.kept.get(name) {
            return Arc::clone(kept);
        }
        let name: Arc<str> = name.into();
        if self.kept.len() < KEPT_NAMES {
            self.kept.insert(Arc::clone(&name));
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_at_two_addresses_is_kept_once() {
        let mut names = Names::new(Box::new(|_, _| None));
        let (one, two) = (c"gemv".to_owned(), c"gemv".to_owned());
        // SAFETY: both are terminated strings that outlive the calls.
        let (first, second) = unsafe {
            (
                names.kernel(one.as_ptr() as usize),
                names.kernel(two.as_ptr() as usize),
            )
        };
        let (first, second) = (first.expect("named"), second.expect("named"));
        assert_eq!(&*first, "gemv");
        assert!(Arc::ptr_eq(&first, &second));
        // SAFETY: null is allowed.
        assert_eq!(unsafe { names.kernel(0) }, None);
    }

    #[test]
    fn names_outside_the_launch_set_are_asked_for_once() {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        let asked = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&asked);
        let mut names = Names::new(Box::new(move |domain, cbid| {
            counter.fetch_add(1, Relaxed);
            (domain == 1 && cbid == 126).then(|| "cuStreamSynchronize".to_owned())
        }));
        let name = |id: ApiId| id.name.map(|name| name.to_string());
        for _ in 0..3 {
            assert_eq!(
                name(names.api(ApiDomain::Driver, 126)).as_deref(),
                Some("cuStreamSynchronize")
            );
            assert_eq!(name(names.api(ApiDomain::Driver, 127)), None);
        }
        assert_eq!(asked.load(Relaxed), 2, "once per id");
        assert_eq!(
            name(names.api(ApiDomain::Runtime, 211)).as_deref(),
            Some("cudaLaunchKernel_v7000")
        );
        assert_eq!(asked.load(Relaxed), 2, "launch functions are known");
    }
}
