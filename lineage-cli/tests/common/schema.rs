//! Checks values against the JSON Schemas that the command prints: the keywords they use, and no
//! others, so that a schema cannot promise what is not checked.

use serde_json::Value;

/// Everything in which a value differs from a schema.
pub(crate) fn differences(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let keywords = schema.as_object().expect("a schema is an object");
    for (keyword, wanted) in keywords {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let pointer = wanted.as_str().and_then(|to| to.strip_prefix('#'));
                let target = pointer.and_then(|to| root.pointer(to));
                check(root, target.expect("it is defined"), value, at, found);
            }
            "type" => {
                let is = |name: &Value| is_of(value, name.as_str().expect("a name"));
                let fits = wanted
                    .as_array()
                    .map_or_else(|| is(wanted), |any| any.iter().any(is));
                if !fits {
                    found.push(format!("{at}: {value} is not {wanted}"));
                }
            }
            "const" if value != wanted => found.push(format!("{at}: {value} is not {wanted}")),
            "enum" if !wanted.as_array().expect("values").contains(value) => {
                found.push(format!("{at}: {value} is none of {wanted}"));
            }
            "minimum" if value.is_number() && value.as_f64() < wanted.as_f64() => {
                found.push(format!("{at}: {value} is below {wanted}"));
            }
            "maximum" if value.is_number() && value.as_f64() > wanted.as_f64() => {
                found.push(format!("{at}: {value} is above {wanted}"));
            }
            "anyOf" => {
                let any = wanted.as_array().expect("schemas");
                let each = any.iter().map(|schema| {
                    let mut found = Vec::new();
                    check(root, schema, value, at, &mut found);
                    found
                });
                let each: Vec<Vec<String>> = each.collect();
                if each.iter().all(|found| !found.is_empty()) {
                    found.push(format!("{at}: fits none of {}: {each:?}", any.len()));
                }
            }
            "items" => {
                for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, wanted, item, &format!("{at}/{number}"), found);
                }
            }
            "required" => {
                let Some(object) = value.as_object() else {
                    continue;
                };
                for name in wanted.as_array().expect("names") {
                    let name = name.as_str().expect("a name");
                    if !object.contains_key(name) {
                        found.push(format!("{at}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, schema) in wanted.as_object().expect("schemas") {
                    if let Some(inner) = value.get(name) {
                        check(root, schema, inner, &format!("{at}/{name}"), found);
                    }
                }
            }
            "additionalProperties" => {
                let known = keywords.get("properties").and_then(Value::as_object);
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if known.is_some_and(|known| known.contains_key(name)) {
                        continue;
                    }
                    match wanted {
                        Value::Bool(true) => {}
                        Value::Bool(false) => found.push(format!("{at}: {name} is not known")),
                        schema => check(root, schema, inner, &format!("{at}/{name}"), found),
                    }
                }
            }
            "propertyNames" => {
                for name in value
                    .as_object()
                    .into_iter()
                    .flat_map(|object| object.keys())
                {
                    check(root, wanted, &Value::from(name.as_str()), at, found);
                }
            }
            "minProperties" | "maxProperties" => {
                let count = value.as_object().map_or(0, serde_json::Map::len) as u64;
                let limit = wanted.as_u64().expect("a number");
                let fits = if keyword == "minProperties" {
                    count >= limit
                } else {
                    count <= limit
                };
                if !fits {
                    found.push(format!("{at}: {count} properties"));
                }
            }
            "const" | "enum" | "minimum" | "maximum" => {}
            other => panic!("{other} is not checked here"),
        }
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

/// Fields of an object, at any depth, that its schema does not name.
pub(crate) fn undocumented(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(schema, schema, value, "", &mut found);
    found
}

fn look(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = match schema.get("$ref").and_then(Value::as_str) {
        Some(to) => root.pointer(&to[1..]).expect("it is defined"),
        None => schema,
    };
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let fitting = any.iter().find(|schema| {
            let mut found = Vec::new();
            check(root, schema, value, at, &mut found);
            found.is_empty()
        });
        if let Some(schema) = fitting {
            look(root, schema, value, at, found);
        }
        return;
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(items) = schema.get("items") {
            look(root, items, item, &format!("{at}/{number}"), found);
        }
    }
    let Some(properties) = schema.get("properties") else {
        return;
    };
    for (name, inner) in value.as_object().into_iter().flatten() {
        match properties.get(name) {
            Some(schema) => look(root, schema, inner, &format!("{at}/{name}"), found),
            None => found.push(format!("{at}/{name}")),
        }
    }
}
