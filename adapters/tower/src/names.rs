//! Names of epochs from methods and route templates.
//!
//! An epoch's name is `'static`. Templates are a router's, so there are few: each name is made once
//! per process and kept. Their number is bounded all the same, since a router may be built from what
//! somebody else sends.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use http::Method;

/// How many names are made at most, all methods together.
const MAX_NAMES: usize = 1024;

/// The methods that have a name. Any other may be a client's invention.
const METHODS: [&str; 9] = [
    "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PATCH", "TRACE",
];

/// The name of a method that is none of these.
const OTHER_METHOD: &str = "HTTP";

/// Names by route, one map for each method.
type Table = [HashMap<&'static str, &'static str>; METHODS.len() + 1];

/// A name, and whether it leaves the route out because there are too many names.
pub(crate) struct Name {
    pub(crate) text: &'static str,
    pub(crate) left_out: bool,
}

pub(crate) fn of(method: &Method, route: Option<&str>) -> Name {
    static TABLE: RwLock<Option<Box<Table>>> = RwLock::new(None);

    let at = METHODS.iter().position(|known| *known == method.as_str());
    let method = at.map_or(OTHER_METHOD, |at| METHODS[at]);
    let whole = |text| Name {
        text,
        left_out: false,
    };
    let Some(route) = route else {
        return whole(method);
    };
    let at = at.unwrap_or(METHODS.len());
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = table.as_ref().and_then(|table| table[at].get(route)) {
        return whole(name);
    }
    drop(table);

    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let table = table.get_or_insert_default();
    let names: usize = table.iter().map(HashMap::len).sum();
    match table[at].get(route) {
        Some(name) => whole(name),
        None if names >= MAX_NAMES => Name {
            text: method,
            left_out: true,
        },
        None => {
            let name: &'static str = format!("{method} {route}").leak();
            // The route is the name's tail.
            table[at].insert(&name[method.len() + 1..], name);
            whole(name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_methods_known() {
        let brew = Method::from_bytes(b"BREW").expect("a valid method");
        assert_eq!(of(&Method::GET, None).text, "GET");
        assert_eq!(of(&brew, None).text, "HTTP");
        assert_eq!(of(&brew, Some("/pot")).text, "HTTP /pot");
        let first = of(&Method::POST, Some("/generate/{model}"));
        assert_eq!(first.text, "POST /generate/{model}");
        assert!(!first.left_out);
        let again = of(&Method::POST, Some("/generate/{model}"));
        assert!(std::ptr::eq(first.text, again.text), "it is made once");
        assert_eq!(
            of(&Method::PUT, Some("/generate/{model}")).text,
            "PUT /generate/{model}"
        );

        let left_out = (0..2 * MAX_NAMES).filter(|number| {
            let name = of(&Method::GET, Some(&format!("/{number}")));
            assert_eq!(name.left_out, name.text == "GET");
            name.left_out
        });
        // Three are taken.
        assert_eq!(left_out.count(), MAX_NAMES + 3);
        assert_eq!(of(&Method::GET, Some("/0")).text, "GET /0");
    }
}
